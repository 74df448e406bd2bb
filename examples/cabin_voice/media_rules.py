"""What can be said to the car besides comfort: media, navigation, calls, doors, driving."""

from __future__ import annotations

from .grammar import Rule, choice


def _volume() -> list[Rule]:
    rules = [
        Rule(
            "volume_set",
            {"act": "volume"},
            (
                "(set|put|turn|change) the (volume|sound|audio|music) to (level |){vol}",
                "~(volume|sound) (to |at |){vol}",
                "~i want (the |)volume (at |){vol}",
                "(play|keep) the music at (volume |level ){vol}",
            ),
            ("(bring|adjust) the (volume|sound) to {vol}", "(keep|put) the (volume|audio) at {vol}"),
        ),
        Rule(
            "mute",
            {"act": "volume", "level": 0},
            (
                "mute( the (music|sound|audio|radio)|)",
                "(turn|switch) off the (sound|music|audio)",
                "~(silence|quiet)( please|)",
            ),
            ("(turn|switch) the (sound|audio|music) off", "~no (sound|music)( please|)"),
            0.5,
        ),
    ]
    words = {
        "up": ("louder", "raise|increase", "{stepsup}", 1),
        "down": ("quieter|softer", "lower|decrease|reduce", "{stepsdown}", -1),
    }
    for to, (adj, verb, by, sign) in words.items():
        rules.append(
            Rule(
                f"volume_{to}",
                {"act": "volume", "delta": sign},
                (
                    f"turn the (volume|music|radio|sound) {to}( {by}|)",
                    f"turn {to} the (volume|music|radio)( {by}|)",
                    f"({verb}) the (volume|sound)( {by}|)",
                    f"~(volume|sound) {to}( {by}|)",
                    f"~(make the music |make it |)({adj})( please|)",
                ),
                (
                    f"({verb}) the (music|audio)( {by}|)",
                    f"turn {to} the (sound|audio)( {by}|)",
                    f"~i want it ({adj})",
                ),
                0.7,
            )
        )
    return rules


def _tracks() -> list[Rule]:
    thing = "(song|track|title)"
    plans = {
        "next": (
            (f"(play the |go to the |)next {thing}", f"skip (this|the) {thing}", "skip( it|)"),
            (f"(skip|jump) to the next {thing}",),
        ),
        "prev": (
            (f"(play the |go back to the |)(previous|last) {thing}", f"go back (one|a) {thing}"),
            (f"(jump|skip) back to the previous {thing}",),
        ),
        "pause": (
            ("pause( the (music|song|playback)|)", "(stop|hold) the (song|playback|music)"),
            (f"(hold|pause) this {thing}",),
        ),
        "play": (
            ("(resume|continue)( the (music|song|playback)|)", "(play|start) the music"),
            ("start (the |)playback", "continue playing"),
        ),
        "shuffle": (
            ("shuffle( the (songs|playlist|music)|)", "(turn on|activate) shuffle"),
            ("(play|mix) the playlist in random order", "shuffle my playlist"),
        ),
        "repeat": (
            (f"repeat (this|the) {thing}", f"play (this|the) {thing} again"),
            (f"~(this|that) {thing} (again|once more)",),
        ),
    }
    return [
        *(
            Rule(f"media_{cmd}", {"act": "media", "cmd": cmd}, train, held, 0.35)
            for cmd, (train, held) in plans.items()
        ),
        Rule(
            "media_genre",
            {"act": "media", "cmd": "play"},
            (
                "play (some |)(good |){genre}( music|)",
                "put on (some |){genre}( music|)",
                "~i (want|would like) (to hear |)(some |){genre}( music|)",
                "~(some |){genre} music( please|)",
            ),
            (
                "~(let's have|let's hear|give me) some {genre}( music|)",
                "start (some |){genre} music",
                "~i'd like to (hear|listen to) (some |){genre}",
            ),
        ),
        Rule(
            "radio",
            {"act": "radio"},
            (
                "(tune|set|switch) (the radio |)to {freq}( fm| megahertz|)",
                "(tune the |)radio (on |at |){freq}( fm|)",
                "play {freq} (fm|on the radio)",
                "put on (station |){freq}( fm|)",
            ),
            ("(change|turn) the radio to {freq}( fm|)", "~i want (to hear |)(station |){freq} fm"),
            0.9,
        ),
    ]


def _navigation() -> list[Rule]:
    return [
        Rule(
            "nav_to",
            {"act": "nav"},
            (
                "(navigate|drive|go|head) to {place}",
                "(take|bring|get) (me|us) to {place}",
                "(start navigation|start the navigation|set the destination|set a course) to {place}",
                "~(how do i get|show me the way|find the way|the fastest way) to {place}",
                "~(i|we) (want|need|have) to (go|get) to {place}",
                "find (a route to |directions to |){place}",
            ),
            (
                "(plan|calculate|show) (a|the) route to {place}",
                "(guide|drive) (me|us) to {place}",
                "~(let's go|let's drive|we'd like to go) to {place}",
            ),
            1.5,
        ),
        Rule(
            "nav_cancel",
            {"act": "nav", "cmd": "cancel"},
            (
                "(stop|cancel|end|quit) (the |)(navigation|route guidance)",
                "cancel the route",
                "~no more navigation",
            ),
            ("(stop|end) the route", "(switch|turn) off (the |)navigation"),
            0.5,
        ),
        Rule(
            "nav_home_tolls",
            {"act": "nav", "cmd": "avoid_tolls"},
            (
                "avoid (toll roads|tolls|the tolls)",
                "(no|without) (toll roads|tolls)",
                "stay off (the |)toll roads",
            ),
            ("~i don't want (toll roads|tolls)", "keep (me |us |)off (the |)toll roads"),
            0.4,
        ),
        Rule(
            "call",
            {"act": "call"},
            (
                "(call|phone|ring|dial) {contact}",
                "(make|start) a (call|phone call) to {contact}",
                "~i (need|want) to (talk|speak) to {contact}",
                "give {contact} a (call|ring)",
                "get {contact} on the (phone|line)",
            ),
            (
                "(place a call to|start a call with) {contact}",
                "~i('d like| have) to (call|phone|speak to) {contact}",
                "(connect|put) me (to|through to) {contact}",
            ),
            1.4,
        ),
        Rule(
            "call_end",
            {"act": "call", "cmd": "end"},
            ("hang up( the phone| the call|)", "(end|finish|stop) (the|this) (call|phone call)"),
            ("(hang up on|drop) this call", "cut the (phone |)call"),
            0.4,
        ),
        Rule(
            "call_answer",
            {"act": "call", "cmd": "answer"},
            ("(answer|accept|take) (the|this) (call|phone|phone call)", "pick up( the phone| the call|)"),
            ("pick up (this|the) phone call", "(accept|answer) the (incoming|new) call"),
            0.4,
        ),
    ]


def _doors() -> list[Rule]:
    return [
        Rule(
            "lock",
            {"act": "door", "cmd": "lock"},
            ("lock {door}", "(lock up|secure) {door}", "~i want {door} locked"),
            ("(get|have|keep) {door} locked", "lock {door} up"),
            0.7,
        ),
        Rule(
            "unlock",
            {"act": "door", "cmd": "unlock"},
            ("unlock {door}", "(release|unlock) the lock (of|on) {door}", "~i want {door} unlocked"),
            ("(get|have|keep) {door} unlocked",),
            0.7,
        ),
        Rule(
            "part_open",
            {"cmd": "open"},
            (
                "open the {part}( please|)",
                "(pop|release|unlatch) the {part}",
                "pop open the {part}",
                "~i need the {part} open",
            ),
            ("(get|have) the {part} (open|opened)", "~i('d like| want) the {part} open"),
            0.7,
        ),
        Rule(
            "part_close",
            {"cmd": "close"},
            ("(close|shut) the {part}( please|)", "~i need the {part} (closed|shut)", "close up the {part}"),
            ("(get|have) the {part} (closed|shut)", "~i('d like| want) the {part} (closed|shut)"),
            0.7,
        ),
    ]


def _driving() -> list[Rule]:
    modes = "{mode} (mode|driving mode)"
    slot = {"mode": choice("mode", {m: m for m in ("eco", "sport", "comfort", "snow")})}
    return [
        Rule(
            "cruise_set",
            {"act": "cruise"},
            (
                "(set|put|turn) (the |)cruise control to {cruise}",
                "~cruise( control|) (at |to |){cruise}",
                "(hold|keep|maintain) (a speed of |){cruise}",
                "(set|put) the speed to {cruise}",
                "(drive|go|cruise) (at |){cruise}",
            ),
            (
                "(set|adjust) (the |my |)cruising speed to {cruise}",
                "(keep|hold|maintain) the (car|speed) at {cruise}",
            ),
        ),
        Rule(
            "cruise_off",
            {"act": "cruise", "cmd": "off"},
            (
                "(turn|switch|shut) off (the |)cruise control",
                "(stop|cancel|disable|end) (the |)cruise control",
                "~cruise control off",
            ),
            ("(turn|switch) (the |)cruise control off", "~no more cruise control"),
            0.4,
        ),
        Rule(
            "mode",
            {"act": "mode"},
            (
                f"(switch|change|go) (to|into) {modes}",
                f"(activate|enable|turn on) {modes}",
                f"~{modes}( please|)",
                "(set|put) the (car|drive mode) (to|in) {mode}( mode|)",
            ),
            (f"(use|start|select) {modes}", f"~i want {modes}"),
            0.8,
            slot,
        ),
        Rule(
            "query",
            {"act": "query"},
            (
                "~what('s| is) the {query}",
                "(tell|show|give) me the {query}",
                "check the {query}",
                "~i (want|need) to know the {query}",
                "~how is the {query}",
            ),
            (
                "(display|read) (me |)the {query}",
                "~(do you know|can i see) the {query}",
                "~i'd like to (see|know) the {query}",
            ),
        ),
    ]


MEDIA_AND_DRIVING: list[Rule] = [*_volume(), *_tracks(), *_navigation(), *_doors(), *_driving()]
