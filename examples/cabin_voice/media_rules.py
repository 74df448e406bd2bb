"""What can be said to the car besides comfort: media, navigation, calls."""

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
        Rule("mute", {"act": "volume", "level": 0}, mute, 0.5),
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


def _navigation() -> list[Rule]:
    to = """
        navigate to {place}
        (drive|go|head) to {place}
        (take|bring) (me|us) to {place}
        get (me|us) to {place}
        (start navigation|start the navigation) to {place}
        (set the destination|set a course) to {place}
        ~how do (i|we) get to {place}
        (show me|find) the way to {place}
        ~the (fastest|shortest|best) way to {place}
        ~(i|we) (want|need|have) to (go|get|drive) to {place}
        find (a route to |directions to |){place}
        (plan|calculate) (a|the) route to {place}
        show (me |)(a|the) route to {place}
        (guide|drive|lead) (me|us) to {place}
        ~let's (go|drive|head) to {place}
        ~(i'd|we'd) like to go to {place}
        give me directions to {place}
        ~(directions|route|navigation) to {place}
        ~(can you|could you) (take|get) (me|us) to {place}
        ~(where is|how far is it to) {place}
        set {place} as (the |my |)destination
        ~(destination|next stop|off to) {place}
        ~my destination is {place}
        ~to {place}( please|)
        ~(i'm|we're) (going|driving) to {place}
        route (me|us) to {place}
        ~i must (get|go) to {place}
        make (your|our) way to {place}
        ~which way (to|is) {place}
    """
    cancel = """
        (stop|cancel|end|quit) (the |)navigation
        (stop|cancel|end|quit) (the |)route guidance
        cancel the route
        (stop|end) the route
        ~no more (navigation|route guidance|directions)
        (switch|turn) off (the |)navigation
        (switch|turn) (the |)navigation off
        ~(navigation|route guidance) off
        (abort|delete|clear) the (route|navigation)
        ~i don't need (the |)(navigation|directions)( anymore|)
        (forget|drop) the (route|destination)
        (leave|exit) (the |)navigation
        stop (guiding|navigating)( me| us|)
        cancel (the |my )(trip|destination)
        shut (down |off )the navigation
    """
    tolls = """
        avoid (toll roads|tolls|the tolls)
        ~(no|without) (toll roads|tolls)
        stay off (the |)toll roads
        keep (me |us |)off (the |)toll roads
        ~i don't want (toll roads|tolls)
        ~(i|we) don't want to pay (tolls|toll)
        (skip|leave out|exclude) (the |)toll roads
        ~a route without (tolls|toll roads)
        find a (way|route) without (tolls|toll roads)
        drive around the tolls
        go without (tolls|toll roads)
        ~(don't use|no more) toll roads
        take (a|the) toll free (route|way)
        ~i'd like to avoid (tolls|toll roads)
    """
    return [
        Rule("nav_to", {"act": "nav"}, to, 1.5),
        Rule("nav_cancel", {"act": "nav", "cmd": "cancel"}, cancel, 0.5),
        Rule("nav_home_tolls", {"act": "nav", "cmd": "avoid_tolls"}, tolls, 0.4),
    ]


def _calls() -> list[Rule]:
    call = """
        (call|phone) {contact}
        (ring|dial) {contact}
        (make|start) a (call|phone call) to {contact}
        ~i (need|want) to (talk|speak) to {contact}
        ~i need to (call|phone|ring) {contact}
        give {contact} a (call|ring)
        get {contact} on the (phone|line)
        (place a call to|start a call with) {contact}
        ~i'd like to (call|phone|speak to) {contact}
        ~i have to (call|phone|speak to) {contact}
        (connect|put) me (through |)to {contact}
        put a call through to {contact}
        ~(let me|i must) (talk|speak) to {contact}
        ring up {contact}
        call up {contact}
        ~(i want|get me) {contact} on the (phone|line)
        ~(a call|phone call|call) to {contact}( please|)
        ~let's (call|phone|ring) {contact}
        ~i (want|would like) to (call|phone) {contact}
        ~can i (talk|speak) to {contact}
        reach {contact} (on|by) the phone
        have a call with {contact}
        get me {contact}
        dial the number of {contact}
        try to (reach|call) {contact}
        connect (the call |)(with|to) {contact}
    """
    end = """
        hang up( the phone| the call|)
        (end|finish|stop) (the|this) (call|phone call)
        (hang up on|drop) this call
        cut the (phone |)call
        ~(i'm|we're) done with (the|this) call
        terminate (the|this) (call|phone call)
        put the phone down
        put down the phone
        ~(call|phone call) over
        get off the phone
        disconnect (the|this) call
        close (the|this) call
        ~that's the end of the call
        ~no more talking on the phone
    """
    answer = """
        (answer|accept|take) (the|this) (call|phone call)
        (answer|get) the phone
        pick up( the phone| the call|)
        pick up (this|the) phone call
        (accept|answer) the (incoming|new) call
        take the (incoming|new) call
        pick the (phone|call) up
        ~i('ll| will) take (the|this) call
        ~i want to (take|answer) (the|this) call
        put the (call|caller) through
        let the caller (in|through)
        ~answer it
        receive (the|this) call
        ~someone is calling pick up
    """
    return [
        Rule("call", {"act": "call"}, call, 1.5),
        Rule("call_end", {"act": "call", "cmd": "end"}, end, 0.4),
        Rule("call_answer", {"act": "call", "cmd": "answer"}, answer, 0.4),
    ]


MEDIA: list[Rule] = [*_volume(), *_tracks(), *_navigation(), *_calls()]
