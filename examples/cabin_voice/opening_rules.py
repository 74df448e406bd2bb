"""What can be said about windows, sunroof, lights and wipers."""

from __future__ import annotations

from .cabin_rules import switches
from .frames import CLOSE, OFF, OPEN, OPENING, SET, fit
from .grammar import Fields, Rule


def _openings() -> list[Rule]:
    some = "(a bit|a little|slightly|a crack)"
    rules: list[Rule] = []
    for act, noun, down, up, base, weight in (
        ("window", "{win}", "(roll down|wind down|lower)", "(roll up|wind up|raise)", {"zone": "all"}, 0.8),
        ("sunroof", "the (sunroof|sun roof|roof|moonroof)", "slide open", "slide shut", {}, 0.4),
    ):
        fields: Fields = {"act": act, **base}
        split_down = "roll @x down\nwind @x down\nput @x down" if act == "window" else "slide @x open\nslide @x back"
        split_up = "roll @x up\nwind @x up\nput @x up" if act == "window" else "slide @x closed\nslide @x shut"
        half = f"""
            open @x (halfway|half way|half)
            {down} @x (halfway|half way|half)
            half open @x
            (put|set) @x (halfway|half way)( open|)
            ~@x (half|halfway|half way) open
            ~i want @x (half|halfway|half way) open
            (leave|keep) @x (half|halfway) open
            open @x to the middle
            bring @x half way( open|)
            ~@x (halfway|half way)( please|)
            (get|have) @x (half|halfway) open
            ~i'd like @x (half|halfway) open
            open half of @x
            move @x (halfway|half way)
            ~@x should be (half|halfway) open
        """
        crack = f"""
            crack @x( open|)
            open @x {some}
            {down} @x {some}
            (get|have) @x open {some}
            ~i want @x open {some}
            ~@x open {some}
            ~@x {some}( open|)( please|)
            (leave|keep) @x open {some}
            ~i'd like @x open {some}
            ~just {some} open on @x
            open @x just {some}
            open @x by a crack
            ~@x should be open {some}
            slightly open @x
            open up @x {some}
        """
        opened = f"{OPEN}{down} @x\n{down} @x (all the way|completely)\n{split_down}"
        closed = f"{CLOSE}{up} @x\n{up} @x (all the way|completely)\n{split_up}"
        plans: list[tuple[str, int | None, str]] = [
            ("open", 100, opened),
            ("close", 0, closed),
            ("half", 50, half),
            ("crack", 10, crack),
            ("pos", None, SET + OPENING + f"\n{down} @x (to |){{pos}} {{percent}}"),
        ]
        for what, pos, frames in plans:
            meaning = fields if pos is None else {**fields, "pos": pos}
            rules.append(Rule(f"{act}_{what}", meaning, fit(frames, noun, "{pos} {percent}"), weight))
    return rules


def _lights() -> list[Rule]:
    base: Fields = {"act": "light", "which": "ambient"}
    amb = "(ambient light|ambient lighting|mood light)"
    color = f"""
        (set|turn) the {amb} (to |){{color}}
        (change|make) the {amb} (to |){{color}}
        ~{{color}} {amb}( please|)
        ~i (want|need) {{color}} {amb}
        make the cabin {{color}}
        (switch|put) the {amb} to {{color}}
        give (me|us) {{color}} {amb}
        ~{amb} (to |in |){{color}}
        ~i'd like (the {amb} in {{color}}|{{color}} {amb})
        ~let's have {{color}} {amb}
        light the cabin (in |){{color}}
        ~i want the {amb} (in |to be |){{color}}
        ~the {amb} should be {{color}}
        turn the cabin {{color}}
        switch to {{color}} {amb}
        ~(how about|can we have) {{color}} {amb}
        color the {amb} {{color}}
        ~(cabin|interior) in {{color}}
        use {{color}} (as the |for the ){amb}
        bring the {amb} to {{color}}
    """
    level = """
        dim the {light} to {bright} {percent}
        ~{light} (at|to) {bright} {percent}
        run the {light} at {bright} {percent}
        set the brightness of the {light} to {bright} {percent}
        ~i want the {light} (dimmed to|with) {bright} {percent}
        make the {light} {bright} {percent} bright
        ~brightness of the {light} (to|at) {bright} {percent}
        dim the {light} down to {bright} {percent}
        (light|shine) the {light} at {bright} {percent}
        ~{bright} {percent} (brightness |)(on|for) the {light}
        (change|bring) the brightness of the {light} to {bright} {percent}
    """
    return [
        *switches("light", "{light}", {"act": "light"}, 1.2),
        Rule("light_color", base, color, 0.7),
        Rule("light_level", {"act": "light"}, fit(SET, "the {light}", "{bright} {percent}") + level),
    ]


def _wipers() -> list[Rule]:
    modes = {
        "slow": "slow|low|low speed",
        "fast": "fast|high|high speed",
        "auto": "auto|automatic|automatic mode",
    }
    frames = """
        set @x (to|on) @m
        put @x (to|on) @m
        (turn|switch) @x (to|on) @m
        ~@b @m
        ~i want @x (on|to) @m
        (get|have) @x (on |)@m
        ~@x (to|on) @m
        (change|move) @x to @m
        (run|keep|leave) @x on @m
        ~i('d| would) like @x on @m
        ~@x should be on @m
        let @x (run|go) on @m
        ~@m on @x
        ~@m for @x
        bring @x to @m
    """
    rules = []
    for zone, x in (("front", "the (front |)wipers"), ("rear", "the (rear|back) wiper")):
        bare = x.removeprefix("the ")
        for mode, words in modes.items():
            text = frames.replace("@x", x).replace("@b", bare).replace("@m", f"({words})")
            rules.append(Rule(f"wiper_{zone}_{mode}", {"act": "wiper", "zone": zone, "mode": mode}, text, 0.25))
        off = fit(OFF, x) + f"\n~{bare} off\n~no (more |){bare}\nstop wiping" * (zone == "front")
        rules.append(Rule(f"wiper_{zone}_off", {"act": "wiper", "zone": zone, "mode": "off"}, off, 0.3))
    glass = "the (windshield|windscreen)"
    wash = f"""
        wash {glass}
        clean {glass}
        spray {glass}
        (get|have) {glass} (washed|cleaned)
        ~{glass} is dirty
        ~i want {glass} (washed|cleaned)
        (put|spray) (some |)water on {glass}
        rinse {glass}
        ~{glass} needs (a wash|washing|cleaning)
        use the (windshield|windscreen) washer
        give {glass} a (wash|clean)
        ~i('d| would) like a clean (windshield|windscreen)
        (wipe and wash|wash and wipe) {glass}
        make {glass} clean
        start the (windshield|windscreen) washer
    """
    return [*rules, Rule("wash", {"act": "wiper", "zone": "front", "mode": "wash"}, wash, 0.3)]


OPENINGS_AND_LIGHTS: list[Rule] = [*_openings(), *_lights(), *_wipers()]
