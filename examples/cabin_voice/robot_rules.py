"""What can be said to the arm and the gripper of a workshop, and to all its machines."""

from __future__ import annotations

from .frames import CLOSE, OPEN, fit
from .grammar import Fields, Rule


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


ARM: list[Rule] = [*_arm(), *_gripper()]
WHOLE_SHOP: list[Rule] = _whole_shop()
