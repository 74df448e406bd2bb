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
            ~(can we have|could i have) @x half open
            ~we (want|need) @x (half|halfway) open
            ~@x needs to be half open
            make @x half open
            let @x be (half|halfway) open
            take @x halfway
            go half way with @x
            ~@x only half( way|)( open|)
            open up @x halfway
            ~i only want @x (half|halfway) open
            ~half open is enough for @x
            open @x to half
            ~how about @x half open
            stop @x half way
            ~would you mind opening @x halfway
            open @x up (half way|halfway)
            ~let's have @x half open
            ~it would be nice to have @x half open
            get @x to the middle
            ~@x in the middle position
                ~@x at half( open|)
            ~i('d| would) like to open @x halfway
            ~half of @x( please|)
            ~@x (has|have) to be half open
            ~see that @x (is|are) half open
            ~not all of @x just half
            ~don't open @x more than half
            ~@x should go half way
            ~half @x( please|)
            set @x to half
            put @x to half
            ~only half of @x( please|)
            ~@x fifty fifty open
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
            ~(can we have|could i have) @x open {some}
            ~we (want|need) @x open {some}
            ~let's have @x open {some}
            make @x open {some}
            let @x be open {some}
            ~let's crack @x( open|)
            ~i want @x cracked( open|)
            ~@x cracked( open|)( please|)
            ~i need a (little|bit of) air from @x
            let (some|a little) air in through @x
            ~just a crack on @x
            ~only a crack (for|on) @x
            ~how about @x open {some}
            ~would you mind opening @x {some}
            ~open @x but only {some}
            give @x a crack
            ~@x needs to be open {some}
            ~it would be nice to have @x open {some}
            ~i need @x open {some}
            ~@x only {some}( open|)
            ~i('d| would) like to open @x {some}
            ~@x (has|have) to be open {some}
            ~don't open @x more than a crack
            ~see that @x (is|are) open {some}
            set @x to a crack
            put @x {some} open
            move @x open {some}
            ~a small gap in @x( please|)
            leave a (small gap|crack) in @x
            leave a (small |)gap at @x
            ~crack open @x( please|)
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
        ~would you mind making the {amb} {{color}}
        ~{{color}} would be (nice|good) for the {amb}
        ~how about {{color}} (for|as) the {amb}
        ~we (want|need|would like) {{color}} {amb}
        get the {amb} to (be |){{color}}
        let the {amb} be {{color}}
        let the (cabin|interior) (be|glow) {{color}}
        make the interior {{color}}
        ~i prefer {{color}} {amb}
        ~i('d| would) like the (cabin|interior) (in |to be |){{color}}
        ~i want the (cabin|interior) (in |to be |){{color}}
        paint the cabin {{color}}
        ~the color of the {amb} should be {{color}}
        (set|change) the color of the {amb} to {{color}}
        put {{color}} on the {amb}
        ~{{color}} for the {amb}( please|)
        ~{{color}} mood please
        ~{{color}} (cabin|interior)( please|)
        ~some {{color}} (light|lighting) in the cabin
        bathe the cabin in {{color}}
        pick {{color}} for the {amb}
        ~{{color}} (is|looks) (better|nice) on the {amb}
        ~the {amb} (looks|is) better in {{color}}
        have the {amb} in {{color}}
        ~(can|could) the {amb} be {{color}}
        try {{color}} (for|on) the {amb}
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
        ~the brightness of the {light} should be {bright} {percent}
        ~i('d| would) like the brightness of the {light} at {bright} {percent}
        ~{light} {bright} {percent}( please|)
        make the {light} shine at {bright} {percent}
        let the {light} shine (at|with) {bright} {percent}
        ~{bright} {percent} {light}
        ~the {light} should shine at {bright} {percent}
        (brighten|fade) the {light} to {bright} {percent}
        turn the {light} (up|down) to {bright} {percent}
        ~i want {bright} {percent} brightness on the {light}
        give the {light} {bright} {percent}
        ~{light} with {bright} {percent}( brightness|)
        have the {light} shine at {bright} {percent}
        ~{light} brightness {bright} {percent}
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
        ~(can we have|could i have) @x on @m
        ~we (need|want) @x on @m
        ~let's have @x on @m
        make @x go @m
        ~how about @x on @m
        ~@x needs to (be on|go) @m
        ~would you mind setting @x to @m
        ~@x (has|have) to (go|be on) @m
        ~i need @x on @m
        dial @x to @m
        wipe @m with @x
        ~it's better to have @x on @m
        ~@b on @m( please|)
        use @m for @x
        choose @m for @x
        ~we'd like @x on @m
        adjust @x to @m
        start @x on @m
        turn on @x in @m
        take @x to @m
        ~i want @m for @x
        ~@x at @m( please|)
        ~it rains put @x on @m
        ~it's raining (set|put) @x to @m
        ~time to set @x to @m
        ~i prefer @x on @m
        ~please @x on @m
        see that @x (is|are) on @m
        wipe with @x on @m
        have @x on @m
        ~@x must be on @m
        ~don't forget to put @x on @m
        switch over @x to @m
        ~i think @x should be on @m
        ~@x would be better on @m
    """
    rules = []
    for zone, x in (("front", "the (front |)wipers"), ("rear", "the (rear|back) wiper")):
        bare = x.removeprefix("the ")
        for mode, words in modes.items():
            text = frames.replace("@x", x).replace("@b", bare).replace("@m", f"({words})")
            rules.append(Rule(f"wiper_{zone}_{mode}", {"act": "wiper", "zone": zone, "mode": mode}, text, 0.25))
        off = (
            fit(OFF, x)
            + f"\n~{bare} off\n~no (more |){bare}"
            + "\nstop wiping\n~it stopped raining\n~no more wiping" * (zone == "front")
        )
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
        ~{glass} is (filthy|muddy|covered in dirt)
        ~i can't see (anything |)through {glass}
        ~there's dirt on {glass}
        ~there are bugs on {glass}
        get the dirt off {glass}
        wash the dirt off {glass}
        ~the front glass needs a (wash|clean)
        ~(can|could) {glass} be (washed|cleaned)
        ~we need {glass} (washed|cleaned)
        ~would you mind washing {glass}
        ~let's (wash|clean) {glass}
        squirt (some |)water on {glass}
        ~{glass} should be (washed|cleaned)
        run the (windshield|windscreen) washer
        ~(windshield|windscreen) washer( on|)( please|)
        ~{glass} (washer|wash)( please|)
        ~some washer fluid (on {glass}|please)
        splash {glass}
        ~time to wash {glass}
        ~how about washing {glass}
        wipe the dirt off {glass}
        turn on the (windshield|windscreen) washer
        have {glass} washed
    """
    return [*rules, Rule("wash", {"act": "wiper", "zone": "front", "mode": "wash"}, wash, 0.3)]


OPENINGS_AND_LIGHTS: list[Rule] = [*_openings(), *_lights(), *_wipers()]
