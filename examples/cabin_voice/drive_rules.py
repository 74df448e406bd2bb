"""What can be said about doors and flaps, the speed, the driving mode, and what can be asked."""

from __future__ import annotations

from .frames import CLOSE, OFF, OPEN, SET, fit
from .grammar import Rule, choice

_PART_CLOSE = """
    ~{part} (closed|shut)( please|)
    slam the {part}( shut|)
    latch the {part}
    put the {part} down
    bring the {part} down
    ~i'm done with the {part}
    ~the {part} isn't closed
    drop the {part} shut
    (flip|push) the {part} closed
"""
_LOCK = """
    bolt {door}
    ~who unlocked {door}
    ~(someone|i) left {door} unlocked
    ~{door} (was|were) left unlocked
    ~don't keep {door} unlocked
    ~someone unlocked {door}
    latch {door}
    (engage|turn on|activate) the lock (of|on) {door}
    ~i don't want {door} unlocked( anymore|)
    ~why (is|are) {door} (still |)unlocked
    ~{door} (is|are) still unlocked
    ~{door} (should|must) not be unlocked
    ~don't leave {door} unlocked
    ~don't let anyone in lock {door}
    ~nobody should get in lock {door}
    secure the lock (of|on) {door}
    keep {door} secured
    ~i want {door} secured
    ~{door} secured( please|)
    ~{door} no longer unlocked please
    ~lock on {door}( please|)
    apply the lock (of|on) {door}
    close the lock (of|on) {door}
    ~the lock (of|on) {door} should be on
    make {door} (safe|secure)
"""


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
        ~(can|could) {door} be @ved
        ~would you mind @ving {door}
        ~how about @ving {door}
        ~we (want|need) {door} @ved
        ~we('d| would) like {door} @ved
        ~let's have {door} @ved
        ~{door} (has|have) to be @ved
        ~{door} (needs|need) to be @ved
        ~{door} must be @ved
        ~don't forget to @v {door}
        ~time to @v {door}
        ~it's time to @v {door}
        see that {door} (is|are) @ved
        leave {door} @ved
        make {door} @ved
        ~i have to @v {door}
        ~i need you to @v {door}
        ~i('d| would) like to @v {door}
        ~{door} @v( please|)
        @v {door} again
        go ahead and @v {door}
        let {door} be @ved
        ~it would be (good|nice) to have {door} @ved
        ~we have to @v {door}
        ~@v for {door}
        set {door} to @ved
        ~why (isn't|aren't) {door} @ved
        ~is it possible to @v {door}
        ~{door} to @ved
    """
    lock = "\nsecure {door}\nlock {door} up\n(engage|put on) the lock (of|on) {door}\nput the lock on {door}" + _LOCK
    unlock = """
        release {door}
        (release|unlock) the lock (of|on) {door}
        (take|get) the lock off {door}
        open the lock (of|on) {door}
        undo the lock (of|on) {door}
        remove the lock from {door}
        (disengage|disable|turn off) the lock (of|on) {door}
        ~no lock on {door}( please|)
        ~i don't want {door} locked( anymore|)
        ~why (is|are) {door} (still |)locked
        ~{door} (is|are) still locked
        ~{door} (should|must) not be locked
        ~don't keep {door} locked
        ~lock off {door}
        unbolt {door}
        ~who locked {door}
        ~someone locked {door}
        ~don't leave {door} locked
        ~{door} (was|were) left locked
        ~no need to have {door} locked
        unlatch {door}
        disengage the locks of {door}
        ~somebody wants to get in unlock {door}
        ~{door} no longer locked please
        take off the lock (of|on) {door}
        cancel the lock (of|on) {door}
        ~i can't get out unlock {door}
        ~the lock (of|on) {door} should be off
    """
    part_open = """
        pop the {part}
        (release|unlatch) the {part}
        pop open the {part}
        pop the {part} open
        ~{part} open( please|)
        let me into the {part}
        ~i need to get into the {part}
        ~i want to put something in the {part}
        ~i need something from the {part}
        give me access to the {part}
        lift the {part}
        (flip|lift) the {part} open
        unlock the {part}
        ~{part} open
        pop {part}
    """
    return [
        Rule("lock", {"act": "door", "cmd": "lock"}, locking.replace("@v", "lock") + lock, 0.8),
        Rule("unlock", {"act": "door", "cmd": "unlock"}, locking.replace("@v", "unlock") + unlock, 0.8),
        Rule("part_open", {"cmd": "open"}, fit(OPEN, "the {part}") + part_open, 1.0),
        Rule("part_close", {"cmd": "close"}, fit(CLOSE, "the {part}") + _PART_CLOSE, 1.0),
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
        ~would you mind driving {cruise}
        ~how about {cruise} (on the|with) cruise control
        ~{cruise} (is|would be) (fine|good|enough)
        ~we (want|need) to (drive|go|do) {cruise}
        (travel|roll) (at |along at |){cruise}
        ~i('d| would) like to (drive|go|travel) (at |){cruise}
        ~don't (drive|go) (faster|slower) than {cruise}
        slow (down |)to {cruise}
        (speed up|accelerate) to {cruise}
        let the car (go|drive|run) (at |){cruise}
        ~the speed should be {cruise}
        ~my cruising speed is {cruise}
        ~cruising speed {cruise}
        ~i want a speed of {cruise}
        ~target {cruise}
        get (us|the car) to {cruise}
        ~(can|could) we (do|drive|go) {cruise}
        hold at {cruise}
        ~let's (do|keep|hold) {cruise}
        ~we should (go|drive|do) {cruise}
        (fix|lock) the speed at {cruise}
        ~{cruise} from (here|now) on
        go for {cruise}
        keep (it |us |)at {cruise}
    """
    off = """
        (end|cancel|quit) (the |)cruise control
        ~no more cruise control
        ~(stop|end) cruising
        (leave|exit) (the |)cruise control
        release (the |)cruise control
        ~i('ll| will) drive (by |)myself
        ~i('ll| will) take over the speed
        give me back control of the speed
        (drop|pause) (the |)cruise control
        ~cruise off
        (turn|switch) off (the |)cruise
        stop keeping the speed
        ~no cruise control( please|)
        don't hold the speed( anymore|)
        get out of cruise control
        (turn|switch) (the |)cruise off
        ~without cruise control( please|)
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
        ~would you mind switching to {modes}
        ~i prefer {modes}
        ~{modes} would be (nice|good|better)
        ~{modes} (is|would be) what i (want|need)
        ~what about {modes}
        ~we('d| would) like {modes}
        ~let's (switch|change|go) to {modes}
        ~let's try {modes}
        go {{mode}} mode
        engage {modes}
        (get|put) the car (in|into) {modes}
        bring the car into {modes}
        ~the (mode|driving mode) should be {{mode}}
        ~(driving|drive) mode {{mode}}
        ~{{mode}}( mode|) for the car( please|)
        have the car in {{mode}}( mode|)
        ~i feel like {modes}
        ~i'd like to drive in {modes}
        ~i('d| would) like to (switch|change) to {modes}
        ~it's time for {modes}
        enter {modes}
        ~can {modes} be (turned|switched) on
        ~(can|could) we (drive|go) in {modes}
        adjust the (drive|driving) mode to {{mode}}
        make the car (drive|go) in {modes}
        run in {modes}
        try {modes}
        switch over to {modes}
        change over to {modes}
        ~we should (be|drive) in {modes}
        ~drive mode to {{mode}}
        ~{modes} now
        ~from now on {modes}
        ~the road needs {modes}
        launch {modes}
        load {modes}
        set {modes} on
        turn to {modes}
        ~use the {{mode}} setting
        ~{{mode}} setting( please|)
        ~{{mode}} driving( please|)
        ~i want the {{mode}} setting
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
        ~would you mind telling me the {query}
        ~i wonder what the {query} is
        ~i wonder about the {query}
        ~i have a question about the {query}
        ~any idea what the {query} is
        ~how does the {query} look
        ~how's the {query} (looking|doing)
        ~what does the {query} look like
        ~(can|could) we see the {query}
        ~we (want|need) to (know|see) the {query}
        ~i must know the {query}
        inform me about the {query}
        ~i'm curious about the {query}
        ~should i worry about the {query}
        ~do we have a good {query}
        ~(can|could) you (check|read out|show) the {query}
        pull up the {query}
        bring up the {query}
        ~what do we have for {query}
        find out the {query}
        have a look at the {query}
        take a look at the {query}
        give us the {query}
        tell us the {query}
        ~what {query} do we have
        ~(what's|what is) our {query}
        ~(what's|what is) my {query}
        ~the {query}( please|)
        ~any (info|information) on the {query}
        ~i need the {query}
        ~i want the {query}
        ~i need an update on the {query}
        announce the {query}
        ~would you check the {query}
        ~what would the {query} be
        ~let's (see|hear|check) the {query}
        state the {query}
        ~where do i see the {query}
    """
    return Rule("query", {"act": "query"}, text, 1.2)


DRIVING: list[Rule] = [*_doors(), *_speed(), _mode(), _query()]
