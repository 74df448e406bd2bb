"""What can be said to the machines of a workshop: conveyors, spindle, pumps, valves, arm, heaters."""

from __future__ import annotations

from .frames import CLOSE, OFF, ON, OPEN, OPENING, PROPERTY, RUN, SET, TIME, fit
from .grammar import Fields, Rule


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
    """
    rules = [
        Rule("spindle_speed", base, fit(SET + RUN, s, "{rpm}{turn?}") + speed, 1.4),
        Rule(
            "spindle_stop",
            {**base, "cmd": "stop"},
            fit(OFF, s) + "\n~no more spindle\nstop (turning|spinning) the spindle",
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
    """
    bar = f"""
        (raise|lower) the pressure of {p} to {{bar}}
        ~i (want|need) {{bar}} (on|from) {p}
        ~{{bar}} from {p}
        (get|give) (me |){{bar}} (from|out of) {p}
        (build up|hold) {{bar}} (with|on) {p}
        ~{p} should (hold|give) {{bar}}
        pressurize {p} to {{bar}}
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


def _arm() -> list[Rule]:
    a = "the (arm|robot arm|robot)"
    move = f"""
        move {a} {{armdir}} (by |){{mm}}
        move {a} {{mm}} (to the |){{armdir}}
        shift {a} {{mm}} (to the |){{armdir}}
        drive {a} {{mm}} {{armdir}}
        (shift|drive) {a} {{armdir}} by {{mm}}
        (bring|push) {a} {{mm}} {{armdir}}
        push {a} {{armdir}} (by |){{mm}}
        ~(arm|robot) {{armdir}} (by |){{mm}}
        ~(arm|robot) {{mm}} {{armdir}}
        ~{{mm}} {{armdir}} with {a}
        ~{a} should (go|move) {{mm}} {{armdir}}
        ~{a} should move {{armdir}} by {{mm}}
        (let|have|make) {a} (go|move) {{mm}} {{armdir}}
        ~i (want|need) {a} {{mm}} (further |){{armdir}}
        (take|get) {a} {{mm}} {{armdir}}
        ~i('d like| want) {a} to (go|move) {{armdir}} by {{mm}}
        go {{mm}} {{armdir}} with {a}
        send {a} {{armdir}} by {{mm}}
        ~{{armdir}} by {{mm}} with {a}
    """
    home = f"""
        (move|bring|send) {a} (home|to home)
        (move|bring|send) {a} to (the home|its home) position
        home {a}
        (park|retract) {a}
        ~arm home
        return {a} to (home|the home position)
        drive {a} to (home|the home position)
        (put|get|take) {a} (back |)home
        ~{a} should go (back |)home
        let {a} go (back |)home
        go home with {a}
        ~i want {a} (back |)home
        ~{a} (back |)(home|to home)( position|)
        have {a} (go|return) home
    """
    stop = f"""
        (stop|halt|freeze) {a}
        (hold|stop) {a} (right there|there|right here)
        ~(arm|robot) stop
        bring {a} to a (stop|halt)
        (freeze|halt) {a} right there
        ~{a} should stop( moving|)
        stop moving {a}
        make {a} (stop|halt)
        keep {a} still
        ~don't move {a}( any further|)
        ~i want {a} to stop
        get {a} to stop
        have {a} (stop|freeze)
    """
    joint = """
        rotate joint {joint} (by |){deg}{turn?}
        turn joint {joint} (by |){deg}{turn?}
        turn joint {joint} {turn} by {deg}
        rotate joint {joint} {turn} by {deg}
        (move|bring) joint {joint} to {deg}
        (swing|drive|set) joint {joint} to {deg}
        rotate joint {joint} to {deg}
        ~joint {joint} (by |to |){deg}{turn?}
        ~joint {joint} {turn} by {deg}
        swing joint {joint} (by |){deg}{turn?}
        move joint {joint} by {deg}{turn?}
        ~i (want|need) joint {joint} at {deg}
        put joint {joint} at {deg}
        ~joint {joint} should (be at|go to) {deg}
        ~{deg} {turn} on joint {joint}
        ~{deg} on joint {joint}
        bend joint {joint} (by|to) {deg}
        twist joint {joint} (by |){deg}{turn?}
        take joint {joint} to {deg}
        let joint {joint} (go|turn) to {deg}
    """
    arm: Fields = {"act": "arm"}
    return [
        Rule("arm_move", arm, move, 1.4),
        Rule("arm_home", {**arm, "cmd": "home"}, home, 0.5),
        Rule("arm_stop", {**arm, "cmd": "stop"}, stop, 0.5),
        Rule("arm_joint", arm, joint),
    ]


def _gripper() -> list[Rule]:
    grip, part = "the (gripper|claw|hand)", "the (part|workpiece|object|piece)"
    open_, close = {"act": "gripper", "cmd": "open"}, {"act": "gripper", "cmd": "close"}
    drop = f"""
        (release|drop) {part}
        let go of {part}
        (put|set) {part} down
        let {part} (go|fall|drop)
        put down {part}
        ~{part.replace("the ", "")} (released|down)
        free {part}
        ~(gripper|claw) open
    """
    grab = f"""
        (grab|grip|grasp) {part}
        (hold|clamp) {part}
        pick up {part}
        (take|catch) {part}
        pick {part} up
        get hold of {part}
        take hold of {part}
        seize {part}
        ~(gripper|claw) (closed|close)
    """
    force = f"""
        (close|shut) {grip} (at|with) {{force}} {{percent}}( force|)
        grip (at|with) {{force}} {{percent}}( force|)
        (set|put) {grip} to {{force}} {{percent}}( force|)
        (grab|grip) {part} (at|with) {{force}} {{percent}}( force|)
        (hold|grasp) {part} (at|with) {{force}} {{percent}}( force|)
        pick up {part} with {{force}} {{percent}}( force|)
        ~{grip} (at|with|to) {{force}} {{percent}}( force|)
        ~grip force {{force}} {{percent}}
        use {{force}} {{percent}} (force|grip) on {part}
        ~{{force}} {{percent}} (force|grip) (on|with) {grip}
        squeeze {part} (at|with) {{force}} {{percent}}( force|)
        (take|clamp) {part} with {{force}} {{percent}}( force|)
        ~i want {grip} at {{force}} {{percent}}( force|)
        close {grip} to {{force}} {{percent}}
        set the (grip|grip force|gripper force) to {{force}} {{percent}}
    """
    return [
        Rule("grip_open", open_, fit(OPEN, grip) + drop, 0.5),
        Rule("grip_close", close, fit(CLOSE, grip) + grab, 0.5),
        Rule("grip_force", close, force, 0.7),
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
    """
    spin = f"""
        spin {m} (at|with) {{mixrpm}}
        let {m} (turn|spin) at {{mixrpm}}
        turn {m} at {{mixrpm}}
        mix at {{mixrpm}} with {m}
        (stir|mix) with {m} at {{mixrpm}}
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


def _whole_shop() -> list[Rule]:
    wait = """
        wait (for |){time}
        pause for {time}
        (hold|sleep) for {time}
        do nothing for {time}
        (stay|hold) (still|idle) for {time}
        ~give it {time}
        ~{time} (break|pause)
        take a (break|pause) of {time}
        for {time} (wait|do nothing)
        (rest|idle) for {time}
        make a pause of {time}
        hold on for {time}
        ~(i want|we need) a (pause|break) of {time}
        wait {time} (before|until) (going on|you go on)
        let {time} pass
        stand by for {time}
        ~don't do anything for {time}
    """
    stop = """
        ~emergency stop
        ~e stop
        stop (everything|all machines|all the machines)
        (halt|shut down) everything
        (shut down|halt) all (the |)machines
        ~everything (stop|off)
        (turn|switch) (everything|all machines) off
        (turn|switch) off (everything|all the machines)
        bring (everything|all machines) to a (stop|halt)
        (shut|power) everything down
        ~all machines (stop|off)
        kill (everything|all the machines)
        ~(stop it all|stop the whole shop)
        hit the emergency stop
        freeze (everything|all machines)
    """
    return [
        Rule("wait", {"act": "wait"}, wait, 0.7),
        Rule("stop_all", {"act": "stop", "what": "all"}, stop, 0.6),
    ]


MACHINES: list[Rule] = [
    *_conveyor(),
    *_spindle(),
    *_pumps(),
    *_valves(),
    *_arm(),
    *_gripper(),
    *_heat_and_mix(),
    *_whole_shop(),
]
