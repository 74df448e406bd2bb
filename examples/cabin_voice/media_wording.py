"""More ways to speak of music and radio, by the name of the rule."""

from __future__ import annotations

_TRACK = {
    "media_next": """
        ~next( one|)( please|)
        ~i('ve| have) heard this @t (too often|enough)
        ~i can't stand this @t
        ~this @t is (boring|awful|bad)
        ~i'm tired of this @t
        ~something else than this @t
        ~would you mind skipping this @t
        ~let's skip this @t
        ~how about the next @t
        ~what's the next @t
        ~we want the next @t
        ~i('d| would) like (to hear |)the next @t
        (forward|advance) to the next @t
        play the following @t
        take the next @t
        go (one @t forward|forward one @t)
        ~one @t forward
        get me the next @t
        ~time for the next @t
        leave out this @t
        (pass|jump) over this @t
        ~i want to skip this @t
        play a different @t
        (change|switch) the @t
        ~(a|some) different @t( please|)
        ~not this @t
        start the next @t
        ~the next @t( please|)
        bring on the next @t
        ~anything but this @t
        let me hear the next @t
        ~this @t can be skipped
        ~we don't like this @t
    """,
    "media_prev": """
        ~i want to go back (one|a) @t
        ~what was the (previous|last) @t play it
        ~i('d| would) like (to hear |)the (previous|last) @t
        ~how about the (previous|last) @t
        ~we want the (previous|last) @t
        ~back( to the (previous|last) @t|)
        ~would you mind going back a @t
        ~go back( please|)
        take me back to the (previous|last) @t
        play the @t from before
        play the one before
        ~the one before( this|)( please|)
        rewind to the (previous|last) @t
        ~i liked the (previous|last) @t
        ~i missed the (previous|last) @t
        ~the (previous|last) @t was (better|nicer|great)
        bring back the (previous|last) @t
        get me the (previous|last) @t
        switch (back |)to the (previous|last) @t
        change to the (previous|last) @t
        ~(could|can) we hear the (previous|last) @t
        ~the (previous|last) @t( please| again|)
        start the (previous|last) @t
        ~back (one|a) @t
        let me hear the (previous|last) @t
        give me the (previous|last) @t
        step back (one|a) @t
        move back (one|a) @t
        put on the (previous|last) @t
        ~let's go back (one|a) @t
        choose the (previous|last) @t
        ~what was that last @t
    """,
    "media_repeat": """
        ~i love this @t play it again
        ~i want this @t (again|once more|on repeat)
        ~i('d| would) like to hear this @t (again|once more)
        ~would you mind repeating this @t
        ~how about this @t again
        ~we want this @t (again|once more)
        ~(could|can) we hear this @t (again|once more)
        let me hear this @t (again|once more)
        play this @t over and over
        play this @t on repeat
        play this @t in a loop
        keep playing this @t
        ~(put it|set it|have it) on repeat
        restart this @t
        ~once more( please|)
        ~one more time( please|)
        ~the same @t (again|once more)( please|)
        play the same @t (again|once more)
        ~repeat( please|)
        do this @t again
        replay (this|the|that) @t
        ~i can't get enough of this @t
        ~encore( please|)
        ~this @t from the (start|beginning)
        play this @t from the (start|beginning)
        ~i want to repeat this @t
        begin (this|the) @t (again|anew)
        give me this @t (again|once more)
        ~that was great play it again
        go over this @t again
        run this @t again
        ~the @t again( please|)
    """,
}

MORE = {name: text.replace("@t", "(song|track)") for name, text in _TRACK.items()} | {
    "volume_set": """
        ~volume at {vol}( please|)
        ~i('d| would) like (the |)volume (at |){vol}
        ~volume {vol}( please|)
        ~sound level {vol}
        ~would you mind setting the volume to {vol}
        ~(level |){vol} is loud enough
        ~music at (level |){vol}
        play it at (level |volume |){vol}
        ~the (music|radio) should play at {vol}
        ~loudness {vol}
        turn it (up |down |)to (level |){vol}
        set the radio to volume {vol}
    """,
    "mute": """
        ~i need (silence|quiet)
        ~it's too noisy turn off the sound
        ~(i want|we want) (it quiet|no music)
        ~not a sound( please|)
        ~no more (sound|noise)( please|)
        make it (silent|quiet)
        silence the (music|radio|speakers)
        mute (it|everything|the speakers)
        ~mute( please|)
        (turn|switch) off the speakers
        ~speakers off
        set the volume to (zero|nothing)
        turn the volume all the way down
        turn the (volume|sound) down completely
        ~hush
        ~shut up
        ~be silent
        ~i can't hear myself think mute it
        shut the (music|sound) off
        take the sound off
        ~i don't want to hear (anything|the music)
        ~would you mind muting the (sound|music)
        ~time for (silence|quiet)
        ~let's have (silence|some quiet)
        ~volume (off|zero)
        ~complete silence( please|)
        have the sound off
        ~the sound should be off
        ~(can|could) we have (silence|some quiet)
        keep (quiet|silent)
        ~quiet down completely
        get rid of the sound
        disable the (sound|audio)
        ~baby is sleeping mute the (sound|music)
        ~i'm on the phone mute the (sound|music)
    """,
    "media_pause": """
        ~one moment pause the music
        ~would you mind pausing the (music|song)
        ~i want (a break from the music|the music to stop)
        ~let's pause the (music|song|playback)
        ~we want to pause the (music|song)
        ~time to pause the music
        ~i('d| would) like to pause the (music|song)
        suspend (the |)playback
        stop this (song|track)
        ~(music|playback) on hold
        ~(song|playback) pause
        don't play (anything|music)( now| anymore|)
        ~pause (it|that)( please|)
        put it on (pause|hold)
        ~stop it there i want to talk
        have the (music|song) (paused|stop)
        get the (music|song) to (pause|stop)
        let the music (rest|stop)
        ~playback should be paused
        ~hold it there
        give the music a (break|rest)
        make the (music|song) (pause|stop)
        ~no music for a (moment|minute|while)
        cease (playing|playback)
        bring the music to a (stop|halt)
        ~i need to pause this
        ~pause now
        keep the (music|song) paused
        hold the music there
        ~enough music( for now|)
        hit pause
        press pause
    """,
    "media_play": """
        ~would you mind resuming the (music|song)
        ~i('d| would) like (the music|some music) back
        ~let's (continue|resume) the (music|song)
        go back to the music
        (resume|continue) (this|the) (song|track)
        restart the (music|playback)
        (hit|press) play
        ~more music( please|)
        ~music( please|)
        ~we want (some |)music
        ~how about some music
        ~(i need|i could use) some music
        put (some |)music on
        play (some |any )music
        play (something|anything)
        have the music (play|playing)
        get the music (going|playing|back)
        ~it's too quiet play something
        ~time for (some |)music
        bring the music back
        keep the music (going|playing)
        let's hear (some |the )music
        ~playback on
        begin playing
        ~i want to hear (some |the )music
        carry on with the (music|song)
        carry on playing
        ~end the pause
        play where (you|we) stopped
        ~music would be (nice|good|great)
        let me hear (some |the )music
        make some music
        pick up the music where it stopped
        turn on (some |the )music
    """,
    "media_shuffle": """
        ~i('d| would) like (the songs|the playlist) shuffled
        ~would you mind shuffling the (songs|playlist)
        ~we want the (songs|playlist) (shuffled|mixed)
        ~let's shuffle the (songs|playlist|music)
        ~how about shuffling the (songs|playlist)
        ~surprise me with the order of the songs
        (enable|start|use) shuffle( mode|)
        go to shuffle mode
        switch to shuffle( mode|)
        set (the playlist|the songs) to (shuffle|random)
        make the (order|playlist) random
        play (all songs|everything) in random order
        ~songs in random order
        jumble the (songs|playlist)
        scramble the (songs|playlist)
        ~shuffle (on|please)
        ~random( play|)( please|)
        randomize the (songs|playlist|music)
        mix my (songs|playlist)
        mix the music up
        play the songs in a (different|random) order
        ~i want a random order
        have the (songs|playlist) shuffled
        ~shuffle it( up|)
        put the music on shuffle
        get the songs (mixed|shuffled)
        ~the songs should be (shuffled|mixed)
        ~the order of the songs should be random
        let the songs come in random order
        play my music at random
        give me a random (song|order)
        play songs at random
        ~mixed up songs( please|)
    """,
    "media_genre": """
        ~(can|could) we (hear|have) (some |){genre}
        ~how about (some |){genre}( music|)
        ~let's (hear|have|listen to) (some |){genre}( music|)
        ~(i'm|we're) in the mood for (some |){genre}( music|)
        ~i feel like (some |){genre}( music|)
        ~i('d| would) love (to hear |)(some |){genre}( music|)
        ~we('d| would) like (to hear |)(some |){genre}( music|)
        ~we want (to hear |)(some |){genre}( music|)
        give me (some |){genre}( music|)
        let me hear (some |){genre}( music|)
        (turn|switch) on (some |){genre}( music|)
        switch to {genre}( music|)
        change (the music |)to {genre}
        start (some |){genre}( music|)
        start playing {genre}( music|)
        ~would you mind playing (some |){genre}( music|)
        find (me |)(some |){genre} (music|songs)
        ~{genre} would be (nice|great|good)
        ~{genre} (music|songs|tunes)( please|)
        play (a |me a ){genre} (song|track)
        play me (some |){genre}( music|)
        play the {genre} (playlist|station|channel)
        put on (a |the ){genre} (song|playlist)
        ~i need (some |){genre}( music|)
        ~i could use (some |){genre}( music|)
        go for (some |){genre}( music|)
        have (some |){genre} (playing|on)
        ~time for (some |){genre}( music|)
        ~(something|anything) {genre}( please|)
        play something {genre}
        listen to {genre}( music|)
        ~a little {genre}( music|)( please|)
        ~got any {genre}
        ~do you have any {genre}
        ~i want to listen to {genre}
        select {genre}( music|)
        ~my favorite is {genre}
    """,
    "radio": """
        ~would you mind tuning to {freq}
        ~i('d| would) like (to hear |)(the station |){freq}
        ~i want to (hear|listen to) (station |){freq}
        ~how about (station |){freq}
        ~let's (hear|listen to) {freq}
        ~we want (station |){freq}
        ~we('d| would) like to hear {freq}
        listen to (station |){freq}( fm|)
        go to {freq} (fm|megahertz|on the radio)
        put {freq} on
        put {freq} on the radio
        turn on (station |){freq}( fm|)
        turn the radio on at {freq}
        get (me |)(the station |){freq}
        find (station |){freq}( fm|)
        give me {freq}( fm|)
        ~station {freq}( please|)
        ~radio at {freq}
        ~radio on {freq}
        ~frequency {freq}( please|)
        set the frequency to {freq}
        (dial|tune) in {freq}
        dial the radio to {freq}
        move the (radio|dial|tuner) to {freq}
        have the radio on {freq}
        ~the radio should be (on|at) {freq}
        bring up {freq}( fm|)
        ~fm {freq}( please|)
        start the radio on {freq}
        let me hear {freq}( fm|)
        ~(can|could) we (hear|have) {freq}
        ~my station is {freq}
        choose {freq} on the radio
        use {freq} on the radio
        ~the station (at|on) {freq}( please|)
        tune the (radio|receiver) (in |)to {freq}
        change the station to {freq}
    """,
}
