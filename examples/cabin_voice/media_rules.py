"""What can be said about the music and the radio."""

from __future__ import annotations

from .frames import SET, fit
from .grammar import Rule


def _volume() -> list[Rule]:
    sound = "the (volume|sound|audio|music)"
    level = """
        ~(volume|sound) (to |at |)(level |){vol}
        ~i want (the |)volume (at |){vol}
        (play|keep) the music at (volume |level ){vol}
        ~volume level {vol}
        give me volume {vol}
        ~the volume should be {vol}
        turn the volume (up|down) to {vol}
        play at volume {vol}
        make the volume {vol}
    """
    mute = """
        mute( the (music|sound|audio|radio)|)
        (turn|switch) off the (sound|music|audio)
        (turn|switch) the (sound|audio|music) off
        ~(silence|quiet)( please|)
        ~no (sound|music)( please|)
        ~i want (silence|quiet|no sound)
        shut off the (sound|audio|music)
        ~(sound|audio|music) off
        go (silent|mute)
        (cut|kill) the (sound|audio|music)
        put (it|the sound|the audio) on mute
        set the (sound|audio) to mute
        ~be quiet
    """
    rules = [
        Rule("volume_set", {"act": "volume"}, fit(SET, sound, "(level |){vol}") + level, 1.2),
        Rule("mute", {"act": "volume", "level": 0}, mute, 0.6),
    ]
    for to, adj, one, two, by, sign in (
        ("up", "louder", "raise", "(increase|boost)", "{stepsup}", 1),
        ("down", "(quieter|softer)", "(lower|reduce)", "decrease", "{stepsdown}", -1),
    ):
        text = f"""
            turn the (volume|music|radio|sound) {to}( {by}|)
            turn {to} the (volume|music|radio)( {by}|)
            turn {to} the (sound|audio)( {by}|)
            {one} the (volume|sound)( {by}|)
            {one} the (music|audio)( {by}|)
            {two} the (volume|sound|audio)( {by}|)
            ~(volume|sound|music) {to}( {by}|)
            ~{adj}( please|)
            make it {adj}
            make the (music|sound|radio) {adj}
            ~i (want|need) it {adj}
            ~i('d| would) like (it|the music) {adj}
            play (it|the music) {adj}
            ~(the music|it) should be {adj}
            ~(can we have|could we get) it {adj}
            bring the (volume|music) {to}( {by}|)
            put the (volume|sound) {to}( {by}|)
            get the (music|sound) {adj}
            ~let's have (it|the music) {adj}
            ~i want the (music|radio) {adj}
            ~it should be {adj}
            ~would you mind making it {adj}
            ~i can('t| not) hear (it|the music) (well|properly) make it {adj}
            ~how about (a bit |a little |){adj}
            ~(a bit|a little|somewhat|much) {adj}( please|)
            ~it's not {adj} enough
            ~{adj} (music|sound)( please|)
            ~we('d| would) like (it|the music) {adj}
            ~we (want|need) it {adj}
            let it (be|play|get) {adj}
            let the music play {adj}
            set the (music|volume|sound) {adj}
            turn the (audio|stereo) {to}( {by}|)
            turn it {to}( {by}|)
            dial the (volume|sound) {to}( {by}|)
            dial {to} the (volume|sound)( {by}|)
            take the (volume|sound) {to}( {by}|)
            move the volume {to}( {by}|)
            nudge the (volume|sound) {to}( {by}|)
            ~volume {by} {to}
            ~(the volume|the sound) should go {to}( {by}|)
            ~the volume (needs|has) to go {to}( {by}|)
            ~the volume could be {adj}
            {one} the (radio|stereo)( {by}|)
            {two} the (music|radio)( {by}|)
            get the volume {to}( {by}|)
            ~(audio|radio) {to}( {by}|)
            ~it would be (nice|good) to have it {adj}
            have the (music|radio) {adj}
            change the volume {by} {to}
        """
        rules.append(Rule(f"volume_{to}", {"act": "volume", "delta": sign}, text, 0.7))
    return rules


_TRACK = {
    "next": """
        ~next @t
        play the next @t
        go to the next @t
        skip (this|the) @t
        (skip|jump) to the next @t
        skip( it|)
        ~(give me|i want) the next @t
        (move|switch|change) to the next @t
        put on the next @t
        ~i don't (like|want) this @t
        play another @t
        ~another @t( please|)
        ~let's hear the next @t
        skip ahead( one @t|)
        on to the next @t
    """,
    "prev": """
        ~(previous|last) @t
        play the (previous|last) @t
        go back to the (previous|last) @t
        go back (one|a) @t
        (jump|skip) back to the (previous|last) @t
        ~one @t back
        ~i want the (previous|last) @t
        put the (previous|last) @t back on
        return to the (previous|last) @t
        play the @t before
        ~the @t before( this one|)( please|)
        (skip|jump) back (one|a) @t
        ~let's hear the (previous|last) @t( again|)
        play that last @t
    """,
    "pause": """
        pause
        pause the (music|song|playback)
        stop the (song|playback|music)
        hold the (song|playback|music)
        (hold|pause) this @t
        stop playing( music|)
        ~music pause
        put the (music|song|playback) on (hold|pause)
        halt the (music|song|playback)
        ~no more music for now
        take a break from the music
        interrupt the (music|song|playback)
        ~(the music|playback) should (stop|pause)
        freeze the (music|song|playback)
    """,
    "play": """
        (resume|continue)
        resume the (music|song|playback)
        continue the (music|song|playback)
        play the music
        start (the |)(music|playback)
        continue playing
        (go on|keep) playing
        go on with the (music|song|playback)
        unpause( the music|)
        play( on|)
        turn the music (back |)on
        ~music on
        ~i want the music back( on|)
        put the music (back |)on
        let the music play
        ~(let's have|give me) (some |the )music
    """,
    "shuffle": """
        shuffle
        shuffle the (songs|playlist|music)
        shuffle my (songs|playlist|music)
        (turn on|activate) shuffle
        (turn|switch) shuffle( mode|) on
        (play|mix) the playlist in random order
        play (the songs|my songs|the music) in random order
        ~(shuffle mode|random order)( please|)
        mix (up |)the (songs|playlist)
        play (the songs|my playlist) shuffled
        ~i want (the songs|the playlist) shuffled
        ~(the playlist|the songs) in random order
        play at random
        put (the songs|the playlist) on shuffle
    """,
    "repeat": """
        repeat (this|the|that) @t
        play (this|the|that) @t again
        ~(this|that) @t (again|once more)
        play (this|that) @t once more
        ~once more (this|that) @t
        ~i want to hear (this|that) @t again
        put (this|the) @t on repeat
        loop (this|the) @t
        ~(again|repeat it)( please|)
        play it (again|once more)
        ~let's hear (this|that) @t (again|once more)
        keep repeating (this|the) @t
        start (this|the) @t (again|over)
        ~(this|that) @t one more time
        play (this|that) @t one more time
    """,
}


def _tracks() -> list[Rule]:
    genre = """
        play (some |)(good |){genre}( music|)
        put on (some |){genre}( music|)
        ~i want (to hear |)(some |){genre}( music|)
        ~i would like (to hear |)(some |){genre}( music|)
        ~i'd like to (hear|listen to) (some |){genre}
        ~(some |){genre} music( please|)
        ~let's (have|hear) (some |){genre}( music|)
        give me (some |a bit of ){genre}( music|)
        start (some |){genre} music
        play (me |us )(some |){genre}
        ~we want (to hear |)(some |){genre}
        ~how about (some |){genre}( music|)
        ~i (feel like|am in the mood for) (some |){genre}( music|)
        switch to {genre}( music|)
        (find|get) (me |us |)some {genre}( music|)
        ~(can we|could we) (have|hear) (some |){genre}
        ~i need (some |){genre}( music|)
        turn on (some |){genre}( music|)
        ~time for (some |){genre}( music|)
        ~{genre}( music|) would be nice
    """
    radio = """
        tune (the radio |)to {freq}( fm| megahertz|)
        (set|switch) (the radio |)to {freq} (fm|megahertz)
        set the radio to {freq}
        (change|turn) the radio to {freq}( fm|)
        ~radio (on |at |to |){freq}( fm|)
        tune the radio (on|at|in at) {freq}( fm|)
        play {freq} (fm|on the radio)
        put on (station |){freq}( fm|)
        ~i want (to hear |)(station |){freq} fm
        put the radio (on|to) {freq}( fm|)
        ~(station|frequency) {freq}( fm|)
        go to (station|frequency) {freq}( fm|)
        ~i'd like (to hear |)(station |){freq} fm
        listen to {freq} (fm|on the radio)
        find (station|frequency) {freq}( fm|)
        ~{freq} (fm|megahertz)( please|)
        ~let's (hear|have) {freq} fm
        change (the station |)to {freq} fm
        turn on {freq} fm
        ~the radio should be (on|at) {freq}
    """
    return [
        *(
            Rule(f"media_{cmd}", {"act": "media", "cmd": cmd}, text.replace("@t", "(song|track|title)"), 0.35)
            for cmd, text in _TRACK.items()
        ),
        Rule("media_genre", {"act": "media", "cmd": "play"}, genre, 1.1),
        Rule("radio", {"act": "radio"}, radio, 0.9),
    ]


MEDIA: list[Rule] = [*_volume(), *_tracks()]
