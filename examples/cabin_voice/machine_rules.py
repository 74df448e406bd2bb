"""What can be said to the machines of a workshop: conveyors, spindle, pumps, valves, heaters, mixers."""

from __future__ import annotations

from .frames import CLOSE, OFF, ON, OPEN, OPENING, PROPERTY, RUN, SET, TIME, fit
from .grammar import Fields, Rule
from .robot_rules import ARM, WHOLE_SHOP


def _start_stop(act: str, slot: str, weight: float) -> list[Rule]:
    start = fit(ON, slot) + f"\nrun {slot}\nlet {slot} run"
    return [
        Rule(f"{act}_start", {"act": act, "cmd": "start"}, start, weight),
        Rule(f"{act}_stop", {"act": act, "cmd": "stop"}, fit(OFF, slot), weight),
    ]


def _conveyor() -> list[Rule]:
    c = "{conveyor}"
    reverse = f"""
        reverse {c}
        (run|move|drive) {c} (backwards|in reverse)
        (put|turn|set) {c} (in|into|to) reverse
        (start|let) {c} (go |run |)backwards
        ~{c} (backwards|in reverse|reverse)
        (switch|change) {c} to reverse
        ~i want {c} (to run backwards|in reverse)
        make {c} (go|run) (backwards|in reverse)
        change the direction of {c}
        (flip|reverse) the direction of {c}
        let {c} run the other way
        ~{c} should (run|go) backwards
        turn {c} around
        have {c} run in reverse
        ~we (want|need) {c} (to run backwards|in reverse)
        ~i('d| would) like {c} (to run backwards|in reverse)
        ~i need {c} to (go|run|move) backwards
        ~let's reverse {c}
        ~would you mind reversing {c}
        ~how about reversing {c}
        ~{c} in the (other|opposite) direction
        ~{c} is running the wrong way
        ~{c} (needs|has) to (go|run) backwards
        ~{c} must (go|run) the other way
        ~(can|could) {c} (go|run) backwards
        run {c} the (other|opposite) way
        run {c} in the (other|opposite) direction
        send {c} (backwards|the other way)
        get {c} (going|running) (backwards|in reverse)
        keep {c} in reverse
        flip {c}( around|)
        invert {c}
        invert the direction of {c}
        switch the direction of {c}
        turn the direction of {c} around
        set {c} to run (backwards|in reverse)
        bring {c} into reverse
        take {c} backwards
        back {c} up
        back up {c}
        ~backwards (on|with) {c}
        ~reverse (on|for) {c}
        ~the direction of {c} should be reversed
        ~{c} should be (reversed|in reverse)
        ~{c} reversed( please|)
        activate reverse on {c}
        put {c} backwards
        make {c} move (backwards|the other way)
        operate {c} in reverse
    """
    return [
        *_start_stop("conveyor", c, 0.6),
        Rule("conveyor_reverse", {"act": "conveyor", "cmd": "reverse"}, reverse, 0.5),
        Rule(
            "conveyor_speed",
            {"act": "conveyor"},
            fit(SET + RUN + PROPERTY, c, "{beltspeed}", "speed") + f"\nmove {c} at {{beltspeed}}",
            1.2,
        ),
    ]


def _spindle() -> list[Rule]:
    base: Fields = {"act": "spindle"}
    s = "(the |)spindle"
    speed = f"""
        spin {s} (at|to) {{rpm}}{{turn?}}
        turn {s} at {{rpm}}{{turn?}}
        (spin|start|run) {s} {{turn}} at {{rpm}}
        turn {s} {{turn}} (at|with) {{rpm}}
        (set|change) the spindle speed to {{rpm}}
        (adjust|bring) the spindle speed to {{rpm}}
        ~spindle speed (to|at|of|) {{rpm}}{{turn?}}
        ~spindle {{turn}} (at|with) {{rpm}}
        ~{{turn}} {{rpm}} on the spindle
        spin up {s} to {{rpm}}{{turn?}}
        ~i want the spindle {{turn}} at {{rpm}}
        rotate {s} (at|with) {{rpm}}{{turn?}}
        ~the spindle (needs|has) to (turn|spin) at {{rpm}}{{turn?}}
        ~i want {{rpm}}{{turn?}} on the spindle
        ~i('d| would) like the spindle {{turn}} at {{rpm}}
        let {s} (turn|spin) {{turn}} at {{rpm}}
        have the spindle (turn|spin) at {{rpm}}{{turn?}}
        make the spindle (turn|spin) {{turn}} at {{rpm}}
        ~the spindle should (turn|spin) {{turn}} at {{rpm}}
        rotate {s} {{turn}} (at|with) {{rpm}}
        ~{{rpm}} {{turn}} for the spindle
        drive {s} {{turn}} (at|with) {{rpm}}
        (take|get) the spindle speed to {{rpm}}
        put the spindle speed at {{rpm}}{{turn?}}
        ~we need the spindle {{turn}} at {{rpm}}
        keep {s} (turning|spinning) at {{rpm}}{{turn?}}
        get {s} (turning|spinning) at {{rpm}}{{turn?}}
    """
    rules = [
        Rule("spindle_speed", base, fit(SET + RUN, s, "{rpm}{turn?}") + speed, 1.4),
        Rule(
            "spindle_stop",
            {**base, "cmd": "stop"},
            fit(OFF, s) + "\n~no more spindle\nstop (turning|spinning) the spindle\n~spindle stop( please|)"
            "\nlet the spindle come to rest\nhold the spindle\nbrake the spindle",
            0.5,
        ),
    ]
    for word, verbs, more in (
        ("faster", ("increase", "raise", "up"), "{rpm_more}"),
        ("slower", ("decrease", "(reduce|lower)", "down"), "{rpm_less}"),
    ):
        one, two, way = verbs
        text = f"""
            (run|spin|turn) {s} {more} {word}
            {one} the (spindle speed|spindle) by {more}
            {two} the (spindle speed|spindle) by {more}
            ~spindle {more} {word}
            make the spindle {more} {word}
            {one} the speed of the spindle by {more}
            {two} the speed of the spindle by {more}
            ~i (want|need) the spindle {more} {word}
            ~the spindle should (be|run|go) {more} {word}
            let {s} (run|go|turn) {more} {word}
            (turn|bring) the spindle (speed |){way} by {more}
            ~spindle {way} (by |){more}
            ~{more} {word} on the spindle
            have the spindle (run|go) {more} {word}
            ~(i'd like|we need) the spindle {more} {word}
            get the spindle (to run |){more} {word}
            ~would you mind running the spindle {more} {word}
            ~how about {more} {word} (on|for) the spindle
            ~the spindle (needs|has) to (be|run|go) {more} {word}
            ~the spindle could (be|run|go) {more} {word}
            ~i('d| would) like the spindle (to run |){more} {word}
            ~we want the spindle {more} {word}
            ~let's (run|have) the spindle {more} {word}
            rotate {s} {more} {word}
            drive {s} {more} {word}
            operate {s} {more} {word}
            set {s} {more} {word}
            change {s} (to run |to be |){more} {word}
            bring {s} {way} by {more}
            take {s} {way} (by |){more}
            move the spindle speed {way} (by |){more}
            get the spindle speed {way} (by |){more}
            dial the spindle {way} (by |){more}
            ~spindle speed {way} (by |){more}
            ~spindle speed {more} {word}
            ~the spindle should go {way} by {more}
            ~{more} {way} on the spindle
            ~{more} {word} for the spindle( please|)
            {one} the rotation of the spindle by {more}
            {two} the rotation of the spindle by {more}
            {one} spindle speed by {more}
            {two} spindle speed by {more}
            keep the spindle {more} {word}
            adjust {s} {way} by {more}
            put the spindle {way} by {more}
        """
        rules.append(Rule(f"spindle_{word}", base, text, 0.7))
    return rules


def _pumps() -> list[Rule]:
    p = "{pump}"
    flow = f"""
        (let|make) {p} deliver {{flow}}
        ~i (want|need) {{flow}} from {p}
        ~{{flow}} from {p}
        (get|give) (me |){{flow}} (from|out of) {p}
        (pump|deliver) {{flow}} with {p}
        ~{p} should (deliver|pump) {{flow}}
        have {p} (pump|deliver) {{flow}}
        ~let's have {{flow}} from {p}
        ~(how about|we need|we want) {{flow}} from {p}
        ~{p} (needs|has) to (deliver|pump) {{flow}}
        let {{flow}} (come|flow) from {p}
        take {{flow}} from {p}
        ~i('d| would) like {{flow}} from {p}
        push {{flow}} through {p}
        send {{flow}} through {p}
        ~{p} (delivering|pumping) {{flow}}
        get {p} to (deliver|pump|give) {{flow}}
        make {p} (give|move) {{flow}}
    """
    bar = f"""
        (raise|lower) the pressure of {p} to {{bar}}
        ~i (want|need) {{bar}} (on|from) {p}
        ~{{bar}} from {p}
        (get|give) (me |){{bar}} (from|out of) {p}
        (build up|hold) {{bar}} (with|on) {p}
        ~{p} should (hold|give) {{bar}}
        pressurize {p} to {{bar}}
        ~let's have {{bar}} from {p}
        ~(how about|we need|we want) {{bar}} from {p}
        ~{p} (needs|has) to (hold|give|reach) {{bar}}
        ~i('d| would) like {{bar}} from {p}
        put {p} under {{bar}}
        have {p} (hold|give) {{bar}}
        get {p} to (hold|give|reach) {{bar}}
        let {p} (build up|reach|hold) {{bar}}
        make {p} (hold|reach|give) {{bar}}
        ~{p} (under|with) {{bar}}
        (increase|reduce|drop) the pressure of {p} to {{bar}}
        ~pressure {{bar}} (on|for) {p}
    """
    return [
        *_start_stop("pump", p, 0.7),
        Rule("pump_flow", {"act": "pump"}, fit(SET + RUN + PROPERTY, p, "{flow}", "flow") + flow, 1.3),
        Rule("pump_pressure", {"act": "pump"}, fit(SET + RUN + PROPERTY, p, "{bar}", "pressure") + bar, 1.3),
        Rule("pump_time", {"act": "pump", "cmd": "start"}, fit(TIME, p, "{time}")),
    ]


def _valves() -> list[Rule]:
    v = "{valve}"
    valve: Fields = {"act": "valve"}
    timed = f"""
        open {v} for {{time}}
        ~{v} open for {{time}}
        (keep|leave) {v} open for {{time}}
        for {{time}} open {v}
        (have|let) {v} open for {{time}}
        ~i (want|need) {v} open for {{time}}
        open up {v} for {{time}}
        ~{v} should (be|stay) open for {{time}}
        (hold|get) {v} open for {{time}}
        ~for {{time}} i (want|need) {v} open
        fully open {v} for {{time}}
        let {v} stay open for {{time}}
        ~{{time}} with {v} open
        ~i('d| would) like {v} open for {{time}}
        ~we (want|need) {v} open for {{time}}
        ~would you mind opening {v} for {{time}}
        ~let's open {v} for {{time}}
        ~how about {v} open for {{time}}
        ~{v} (needs|has) to (be|stay) open for {{time}}
        ~{v} must stay open for {{time}}
        ~(can|could) {v} (be|stay) open for {{time}}
        make {v} (stay |)open for {{time}}
        open {v} and close it (again |)after {{time}}
        open {v} then shut it after {{time}}
        open {v} {{time}} long
        open {v} all the way for {{time}}
        open {v} (completely|fully) for {{time}}
        open {v} up for {{time}}
        let {v} be open for {{time}}
        leave {v} (standing |)open {{time}}
        set {v} open for {{time}}
        put {v} open for {{time}}
        turn {v} open for {{time}}
        have {v} opened for {{time}}
        get {v} opened for {{time}}
        give {v} {{time}} (open|of opening)
        ~for {{time}} {v} should be open
        ~for the next {{time}} keep {v} open
        for {{time}} keep {v} open
        for {{time}} let {v} be open
        ~{v} opened for {{time}}
        ~{{time}} of {v} open
        see that {v} is open for {{time}}
    """
    return [
        Rule("valve_open", {**valve, "pos": 100}, fit(OPEN, v) + f"\n(put|set|turn) {v} (to |)(open|fully open)", 0.7),
        Rule(
            "valve_close",
            {**valve, "pos": 0},
            fit(CLOSE, v) + f"\n(put|set|turn) {v} (to |)(closed|shut)\nshut off {v}\nshut {v} off",
            0.7,
        ),
        Rule("valve_pos", valve, fit(SET + OPENING, v, "{pos} {percent}"), 1.2),
        Rule("valve_time", {**valve, "pos": 100}, timed, 0.8),
    ]


def _heat_and_mix() -> list[Rule]:
    h, m = "{heater}", "{mixer}"
    heat = f"""
        heat {h} (up |)to {{ovenc}}
        heat up {h} to {{ovenc}}
        preheat {h} to {{ovenc}}
        get {h} (hot, |)to {{ovenc}}
        ~{h} should reach {{ovenc}}
        let {h} (reach|heat up to) {{ovenc}}
        ~{{ovenc}} in {h}
        warm {h} (up |)to {{ovenc}}
        warm up {h} to {{ovenc}}
        cool {h} (down |)to {{ovenc}}
        ~i (want|need) {{ovenc}} in {h}
        ~{h} (needs|has) to reach {{ovenc}}
        bake at {{ovenc}} in {h}
        make {h} as hot as {{ovenc}}
        ~{h} hot to {{ovenc}}
        have {h} (heat up to|reach) {{ovenc}}
        ~it should be {{ovenc}} in {h}
        raise {h} to {{ovenc}}
        lower {h} to {{ovenc}}
    """
    spin = f"""
        spin {m} (at|with) {{mixrpm}}
        let {m} (turn|spin) at {{mixrpm}}
        turn {m} at {{mixrpm}}
        mix at {{mixrpm}} with {m}
        (stir|mix) with {m} at {{mixrpm}}
        rotate {m} (at|with) {{mixrpm}}
        stir at {{mixrpm}} with {m}
        ~{m} should (turn|stir|spin) at {{mixrpm}}
        have {m} (turn|stir|spin) at {{mixrpm}}
        make {m} (turn|stir|spin) at {{mixrpm}}
        spin up {m} to {{mixrpm}}
        ~i want {{mixrpm}} from {m}
    """
    return [
        *_start_stop("heater", h, 0.4),
        Rule(
            "heater_temp",
            {"act": "heater"},
            fit(SET + PROPERTY, h, "{ovenc}", "temperature") + heat + fit("run @x at @n", h, "{ovenc}"),
        ),
        *_start_stop("mixer", m, 0.4),
        Rule("mixer_speed", {"act": "mixer"}, fit(SET + RUN + PROPERTY, m, "{mixrpm}", "speed") + spin),
        Rule("mixer_time", {"act": "mixer", "cmd": "start"}, fit(TIME, m, "{time}"), 0.7),
    ]


MACHINES: list[Rule] = [
    *_conveyor(),
    *_spindle(),
    *_pumps(),
    *_valves(),
    *ARM,
    *_heat_and_mix(),
    *WHOLE_SHOP,
]
