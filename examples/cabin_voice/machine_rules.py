"""What can be said to the machines of a workshop: conveyors, spindle, pumps, valves, arm, heaters."""

from __future__ import annotations

from .grammar import Fields, Rule


def _start_stop(act: str, slot: str, weight: float) -> list[Rule]:
    return [
        Rule(
            f"{act}_start",
            {"act": act, "cmd": "start"},
            (
                f"(start|run|turn on|switch on) {slot}",
                f"(turn|switch) {slot} on",
                f"~{slot} on",
                f"get {slot} (going|running)",
            ),
            (f"(activate|power up) {slot}", f"(put|get) {slot} on"),
            weight,
        ),
        Rule(
            f"{act}_stop",
            {"act": act, "cmd": "stop"},
            (
                f"(stop|halt|turn off|shut off|switch off) {slot}",
                f"(turn|switch) {slot} off",
                f"~{slot} off",
                f"shut {slot} down",
            ),
            (f"(deactivate|shut down) {slot}", f"(bring|get) {slot} to a (stop|halt)"),
            weight,
        ),
    ]


def _conveyor() -> list[Rule]:
    c = "{conveyor}"
    return [
        *_start_stop("conveyor", c, 0.6),
        Rule(
            "conveyor_reverse",
            {"act": "conveyor", "cmd": "reverse"},
            (f"reverse {c}", f"(run|move) {c} (backwards|in reverse)"),
            (f"(put|turn) {c} in reverse", f"(start|let) {c} (go |run |)backwards"),
            0.5,
        ),
        Rule(
            "conveyor_speed",
            {"act": "conveyor"},
            (
                f"(set|put|bring) {c} to {{beltspeed}}",
                f"(run|drive) {c} at {{beltspeed}}",
                f"~{c} (to |at |){{beltspeed}}",
                f"(set|change) the speed of {c} to {{beltspeed}}",
            ),
            (f"(move|keep) {c} at {{beltspeed}}", f"(adjust|bring) the speed of {c} to {{beltspeed}}"),
        ),
    ]


def _spindle() -> list[Rule]:
    base: Fields = {"act": "spindle"}
    s = "(the |)spindle"
    rules = [
        Rule(
            "spindle_speed",
            base,
            (
                f"(set|bring|spin) {s} to {{rpm}}( {{turn}}|)",
                f"(run|spin|turn) {s} at {{rpm}}( {{turn}}|)",
                "~spindle( speed|) (to |at |){rpm}( {turn}|)",
                "(set|change) the spindle speed to {rpm}",
                f"(spin|start) {s} {{turn}} at {{rpm}}",
            ),
            (
                f"(put|start) {s} at {{rpm}}( {{turn}}|)",
                "(adjust|bring) the spindle speed to {rpm}",
                f"(run|turn) {s} {{turn}} at {{rpm}}",
            ),
            1.4,
        ),
        Rule(
            "spindle_stop",
            {**base, "cmd": "stop"},
            (
                f"(stop|halt|turn off|shut off) {s}",
                "(turn|switch) the spindle off",
                "~spindle off",
                "~no more spindle",
            ),
            ("(shut down|switch off) the spindle", "bring the spindle to a (stop|halt)"),
            0.5,
        ),
    ]
    for word, sign in (("faster", 1), ("slower", -1)):
        verb = "increase|raise" if sign > 0 else "decrease|reduce|lower"
        slot = "{rpm_more}" if sign > 0 else "{rpm_less}"
        rules.append(
            Rule(
                f"spindle_{word}",
                base,
                (
                    f"(run|spin|turn) {s} {slot} {word}",
                    f"({verb}) the (spindle speed|spindle) by {slot}",
                    f"~spindle {slot} {word}",
                ),
                (f"make the spindle {slot} {word}", f"({verb}) the speed of the spindle by {slot}"),
                0.6,
            )
        )
    return rules


def _fluids() -> list[Rule]:
    p, v = "{pump}", "{valve}"
    valve: Fields = {"act": "valve"}
    return [
        *_start_stop("pump", p, 0.7),
        Rule(
            "pump_flow",
            {"act": "pump"},
            (
                f"(set|bring|adjust) {p} to {{flow}}",
                f"(run|drive) {p} at {{flow}}",
                f"~{p} (to |at |){{flow}}",
                f"(set|change) the flow of {p} to {{flow}}",
            ),
            (
                f"(let|make) {p} (deliver|run at) {{flow}}",
                f"(put|keep) {p} at {{flow}}",
                f"~i (want|need) {{flow}} from {p}",
            ),
        ),
        Rule(
            "pump_pressure",
            {"act": "pump"},
            (
                f"(set|bring|adjust) {p} to {{bar}}",
                f"(set|change|raise|lower) the pressure of {p} to {{bar}}",
                f"~{p} (to |at |){{bar}}",
                f"(run|hold) {p} at {{bar}}",
            ),
            (
                f"(put|keep) {p} at {{bar}}",
                f"(bring|adjust) the pressure of {p} to {{bar}}",
                f"~i (want|need) {{bar}} (on|from) {p}",
            ),
        ),
        Rule(
            "pump_time",
            {"act": "pump", "cmd": "start"},
            (
                f"(run|start|turn on) {p} for {{time}}",
                f"~{p} (on |)for {{time}}",
                f"let {p} run for {{time}}",
            ),
            (f"(switch on|keep) {p} (running |)for {{time}}", f"for {{time}} run {p}"),
        ),
        Rule(
            "valve_open",
            {**valve, "pos": 100},
            (f"open {v}( fully| completely|)", f"~{v} (open|fully open)", f"open up {v}"),
            (f"(put|set|get) {v} (open|fully open)", f"open {v} all the way"),
            0.7,
        ),
        Rule(
            "valve_close",
            {**valve, "pos": 0},
            (f"(close|shut) {v}( fully| completely|)", f"~{v} (closed|shut)", f"shut off {v}"),
            (f"(put|set|get) {v} (closed|shut)", f"(close|shut) {v} all the way"),
            0.7,
        ),
        Rule(
            "valve_pos",
            valve,
            (
                f"(open|set|put|turn) {v} to {{pos}} {{percent}}",
                f"open {v} {{pos}} {{percent}}",
                f"~{v} (to |at |){{pos}} {{percent}}",
            ),
            (f"(bring|move|adjust) {v} to {{pos}} {{percent}}", f"~i want {v} at {{pos}} {{percent}}"),
        ),
        Rule(
            "valve_time",
            {**valve, "pos": 100},
            (f"open {v} for {{time}}", f"~{v} open for {{time}}", f"(keep|leave) {v} open for {{time}}"),
            (f"for {{time}} open {v}", f"(have|let) {v} open for {{time}}"),
            0.8,
        ),
    ]


def _arm() -> list[Rule]:
    a = "the (arm|robot arm|robot)"
    arm: Fields = {"act": "arm"}
    grip = "the (gripper|claw|hand)"
    return [
        Rule(
            "arm_move",
            arm,
            (
                f"move {a} {{armdir}} (by |){{mm}}",
                f"move {a} {{mm}} {{armdir}}",
                f"(shift|drive) {a} {{mm}} (to the |){{armdir}}",
                "~(arm|robot) {armdir} (by |){mm}",
                "~(arm|robot) {mm} {armdir}",
            ),
            (
                f"(bring|push) {a} {{mm}} {{armdir}}",
                f"(shift|drive) {a} {{armdir}} by {{mm}}",
                f"~{{mm}} {{armdir}} with {a}",
            ),
            1.4,
        ),
        Rule(
            "arm_home",
            {**arm, "cmd": "home"},
            (
                f"(move|bring|send) {a} (home|to home|to the home position)",
                f"home {a}",
                f"(park|retract) {a}",
                "~arm home",
            ),
            (f"(return|drive) {a} to (home|the home position)", f"(put|get) {a} home"),
            0.5,
        ),
        Rule(
            "arm_stop",
            {**arm, "cmd": "stop"},
            (f"(stop|halt|freeze) {a}", f"(hold|stop) {a} (right there|there)", "~(arm|robot) stop"),
            (f"bring {a} to a (stop|halt)", f"(freeze|halt) {a} right there"),
            0.5,
        ),
        Rule(
            "arm_joint",
            arm,
            (
                "(rotate|turn) joint {joint} (by |){deg}( {turn}|)",
                "(move|bring) joint {joint} to {deg}",
                "~joint {joint} (by |to |){deg}( {turn}|)",
            ),
            ("(swing|rotate|drive) joint {joint} to {deg}", "turn joint {joint} {turn} by {deg}"),
        ),
        Rule(
            "grip_open",
            {"act": "gripper", "cmd": "open"},
            (f"open {grip}", "(release|let go of|drop) the (part|workpiece|object)", "~(gripper|claw) open"),
            (f"(get|have) {grip} open", f"open {grip} up"),
            0.5,
        ),
        Rule(
            "grip_close",
            {"act": "gripper", "cmd": "close"},
            (
                f"(close|shut) {grip}",
                "(grab|grip|grasp|hold) the (part|workpiece|object)",
                "~(gripper|claw) (closed|close)",
            ),
            (f"(get|have) {grip} closed", "(pick up|take) the (part|workpiece)"),
            0.5,
        ),
        Rule(
            "grip_force",
            {"act": "gripper", "cmd": "close"},
            (
                f"(close|grip with) {grip} (at|with) {{force}} {{percent}}( force|)",
                f"(set|put) {grip} to {{force}} {{percent}}( force|)",
                "(grab|grip) the (part|workpiece|object) (at|with) {force} {percent}( force|)",
            ),
            (
                "(hold|grasp) the (part|workpiece) (at|with) {force} {percent}( force|)",
                f"shut {grip} (at|with) {{force}} {{percent}}",
            ),
            0.7,
        ),
    ]


def _heat_and_mix() -> list[Rule]:
    h, m = "{heater}", "{mixer}"
    return [
        *_start_stop("heater", h, 0.4),
        Rule(
            "heater_temp",
            {"act": "heater"},
            (
                f"(set|bring|heat) {h} to {{ovenc}}",
                f"(run|hold) {h} at {{ovenc}}",
                f"~{h} (to |at |){{ovenc}}",
                f"(set|change) the temperature of {h} to {{ovenc}}",
            ),
            (f"(put|keep) {h} at {{ovenc}}", f"(bring|adjust) the temperature of {h} to {{ovenc}}"),
        ),
        *_start_stop("mixer", m, 0.4),
        Rule(
            "mixer_speed",
            {"act": "mixer"},
            (f"(set|bring) {m} to {{mixrpm}}", f"(run|spin) {m} at {{mixrpm}}", f"~{m} (to |at |){{mixrpm}}"),
            (f"(keep|put) {m} at {{mixrpm}}", f"(let|make) {m} (run|turn) at {{mixrpm}}"),
            0.8,
        ),
        Rule(
            "mixer_time",
            {"act": "mixer", "cmd": "start"},
            (f"(run|start) {m} for {{time}}", f"~{m} (on |)for {{time}}", f"let {m} run for {{time}}"),
            (f"(switch on|keep) {m} (running |)for {{time}}", f"for {{time}} run {m}"),
            0.6,
        ),
        Rule(
            "wait",
            {"act": "wait"},
            ("wait (for |){time}", "pause for {time}", "(hold|sleep) for {time}", "do nothing for {time}"),
            ("(stay|hold) (still|idle) for {time}", "~give it {time}"),
            0.7,
        ),
        Rule(
            "stop_all",
            {"act": "stop", "what": "all"},
            (
                "~emergency stop",
                "stop (everything|all machines|all the machines)",
                "(halt|shut down) everything",
                "~e stop",
            ),
            ("(shut down|halt) all (the |)machines", "everything (stop|off)"),
            0.6,
        ),
    ]


MACHINES: list[Rule] = [*_conveyor(), *_spindle(), *_fluids(), *_arm(), *_heat_and_mix()]
