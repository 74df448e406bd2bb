"""What can be said about doors and flaps, the speed, the driving mode, and what can be asked."""

from __future__ import annotations

from .frames import CLOSE, OFF, OPEN, SET, fit
from .grammar import Rule, choice


def _doors() -> list[Rule]:
    locking = """
        @v {door}
        @v up {door}
        ~i want {door} @ved
        ~i need {door} @ved
        (get|have) {door} @ved
        keep {door} @ved
        ~{door} @ved
        ~{door} should be @ved
        make sure {door} (is|are) @ved
        ~i('d| would) like {door} @ved
        ~i want to @v {door}
        ~let's @v {door}
        ~(can we have|could i have) {door} @ved
        put {door} in the @ved state
        @v {door} (now|for me)
    """
    lock = "\nsecure {door}\nlock {door} up\n(engage|put on) the lock (of|on) {door}\nput the lock on {door}"
    unlock = """
        release {door}
        (release|unlock) the lock (of|on) {door}
        (take|get) the lock off {door}
        open the lock (of|on) {door}
        undo the lock (of|on) {door}
    """
    part_open = """
        pop the {part}
        (release|unlatch) the {part}
        pop open the {part}
        pop the {part} open
        ~{part} open( please|)
        let me into the {part}
        ~i need to get into the {part}
    """
    return [
        Rule("lock", {"act": "door", "cmd": "lock"}, locking.replace("@v", "lock") + lock, 0.8),
        Rule("unlock", {"act": "door", "cmd": "unlock"}, locking.replace("@v", "unlock") + unlock, 0.8),
        Rule("part_open", {"cmd": "open"}, fit(OPEN, "the {part}") + part_open, 0.8),
        Rule("part_close", {"cmd": "close"}, fit(CLOSE, "the {part}") + "\n~{part} (closed|shut)( please|)", 0.8),
    ]


def _speed() -> list[Rule]:
    control = "(the |)cruise control"
    speed = """
        ~cruise( control|) (at |to |){cruise}
        (hold|keep|maintain) (a speed of |){cruise}
        (set|put) the speed to {cruise}
        (drive|go) (at |){cruise}
        cruise (at |along at |){cruise}
        (set|adjust) (the |my |)cruising speed to {cruise}
        (keep|hold|maintain) the (car|speed) at {cruise}
        ~i want to (drive|go|cruise) (at |){cruise}
        ~let's (drive|go|cruise) (at |){cruise}
        ~(set|target) speed {cruise}
        take (the car|us) to {cruise}
        ~the (car|speed) should (stay at|be) {cruise}
        stay at {cruise}
        ~{cruise} (on the|with) cruise control
        make (the car|it) (go|drive) {cruise}
        limit the speed to {cruise}
        ~speed (to|at) {cruise}
        bring the speed to {cruise}
        ~{cruise}( please|)
    """
    off = """
        (end|cancel|quit) (the |)cruise control
        ~no more cruise control
        ~(stop|end) cruising
        (leave|exit) (the |)cruise control
        release (the |)cruise control
    """
    return [
        Rule("cruise_set", {"act": "cruise"}, fit(SET, control, "{cruise}") + speed, 1.1),
        Rule("cruise_off", {"act": "cruise", "cmd": "off"}, fit(OFF, control) + off, 0.4),
    ]


def _mode() -> Rule:
    modes = "{mode} (mode|driving mode)"
    text = f"""
        (switch|change|go) (to|into) {modes}
        (activate|enable|turn on) {modes}
        ~{modes}( please|)
        set the (car|drive mode) to {{mode}}( mode|)
        put the (car|drive mode) in {{mode}}( mode|)
        (use|start|select) {modes}
        ~i (want|need) {modes}
        ~i'd like {modes}
        ~i want to drive in {modes}
        drive in {modes}
        ~let's (have|use|drive in) {modes}
        ~(time for|how about|we want) {modes}
        (turn|switch) {modes} on
        (get|put) (us|me) in(to|) {modes}
        ~{modes} on
        set {modes}
        (choose|pick|take) {modes}
        ~the car should (be|drive) in {modes}
        give me {modes}
        change the (drive|driving) mode to {{mode}}
        make it {modes}
    """
    slot = {"mode": choice("mode", {m: m for m in ("eco", "sport", "comfort", "snow")})}
    return Rule("mode", {"act": "mode"}, text, 0.8, slot)


def _query() -> Rule:
    text = """
        ~what('s| is) the {query}
        ~what('s| is) the {query} (now|right now|like)
        (tell|give) me the {query}
        show (me |)the {query}
        check the {query}
        ~i (want|need) to know the {query}
        ~how is the {query}
        (display|read) (me |)the {query}
        ~do you know the {query}
        ~(can i|let me) (see|know|hear) the {query}
        ~i'd like to (see|know) the {query}
        ~{query}( please|)
        ~what about the {query}
        report the {query}
        read out the {query}
        (look at|look up) the {query}
        ~is the {query} (okay|all right|good)
        ~(could|can) you tell me the {query}
        get me the {query}
        let me know the {query}
        ~how('s| about) the {query}
        say the {query}
        ~i want to see the {query}
        ~(any news on|how good is) the {query}
        put the {query} on the (screen|display)
    """
    return Rule("query", {"act": "query"}, text, 1.2)


DRIVING: list[Rule] = [*_doors(), *_speed(), _mode(), _query()]
