"""What can be said to the car cabin: rules with training and held-out patterns."""

from __future__ import annotations

from .grammar import Fields, Rule

Z = "( {czone}|)"


def _climate_shift(up: bool) -> list[Rule]:
    raise_, adj, by = ("raise|increase", "{warmer}", "{byup}") if up else ("lower|reduce", "{cooler}", "{bydown}")
    to, sign = ("up", 1) if up else ("down", -1)
    little, much = ("a bit chilly|a little cold|a bit cold|chilly", "too cold|freezing|way too cold|so cold")
    if not up:
        little, much = ("a bit warm|a little hot|a bit hot|warm", "too hot|too warm|boiling|so hot")
    base: Fields = {"act": "climate", "zone": "all", "delta": sign, "unit": "C"}
    change = Rule(
        f"climate_{to}",
        base,
        train=(
            f"make it {adj}{Z}",
            f"({raise_}|turn {to}) the (temperature|temp|heat){Z}( {by}|)",
            f"(turn|dial) the (heat|temperature) {to}{Z}( {by}|)",
            f"~i (need|want|would like) it {adj}{Z}",
            f"~it should be {adj}{Z}",
            f"~(can we get|could we have) it {adj}{Z}",
            f"~(temperature|temp) {to} {by}{Z}",
            f"~{adj}{Z}",
        ),
        held=(
            f"~i'd like it {adj}{Z}",
            f"dial {to} the (temp|temperature|heat){Z} {by}",
            f"~(let's have|let's make) it {adj}{Z}",
            f"({raise_}) the (cabin temperature|climate){Z} {by}",
        ),
        weight=1.5,
    )
    feel = Rule(
        f"feel_{'cold' if up else 'hot'}",
        {**base, "delta": 2 * sign},
        train=(
            f"~(it's|it is) ({much}){Z}",
            f"~(i'm|i am) ({'freezing|too cold|so cold' if up else 'boiling|too hot|so hot'})",
            f"~(why is it|it feels) ({much}){Z}",
        ),
        held=(
            f"~(i feel|we are) ({'freezing|too cold' if up else 'boiling|too hot'})",
            f"~it has become ({much}){Z}",
        ),
        weight=0.5,
    )
    mild = Rule(
        f"feel_{'chilly' if up else 'warm'}",
        base,
        train=(f"~(it's|it is) ({little}){Z}", f"~it feels ({little}){Z}"),
        held=(f"~it has become ({little}){Z}",),
        weight=0.4,
    )
    return [change, feel, mild]


def _fan() -> list[Rule]:
    base: Fields = {"act": "fan", "zone": "all"}
    rules = [
        Rule(
            "fan_set",
            base,
            (
                f"(set|put|turn) the (fan|blower|fan speed){Z} to (level |speed |){{fanlevel}}",
                f"~(fan|fan speed|blower) (level |){{fanlevel}}{Z}",
                f"(run|keep) the (fan|blower) at (level |speed |){{fanlevel}}{Z}",
                f"~(i want|give me|i need) (fan|blower) (level|speed) {{fanlevel}}{Z}",
                f"~(ventilation|air flow) to {{fanlevel}}{Z}",
            ),
            (
                f"(change|adjust) the (blower|fan) to (level |speed ){{fanlevel}}{Z}",
                f"(set|put) the (fan|blower) at {{fanlevel}}{Z}",
            ),
        ),
        Rule(
            "fan_off",
            {**base, "level": 0},
            (
                f"(turn|switch|shut) off the (fan|blower){Z}",
                f"(turn|switch) the (fan|blower|ventilation) off{Z}",
                f"stop the (fan|blower|ventilation){Z}",
                f"~no (more |)(fan|blower){Z}",
                f"~(fan|blower) off{Z}",
            ),
            (f"shut the (fan|blower) off{Z}", f"~i (don't want|don't need) the (fan|blower){Z}"),
            weight=0.6,
        ),
    ]
    words = {
        "up": ("more|stronger", "increase|speed up", "{stepsup}", 1),
        "down": ("less|weaker", "decrease|slow down", "{stepsdown}", -1),
    }
    for to, (more, verb, by, sign) in words.items():
        rules.append(
            Rule(
                f"fan_{to}",
                {**base, "delta": sign},
                (
                    f"turn the (fan|blower) {to}{Z}( {by}|)",
                    f"~({more}) (air|fan|ventilation){Z}( please|)",
                    f"({verb}) the (fan|blower|air flow){Z}( {by}|)",
                    f"~(fan|blower) {to}( {by}|){Z}",
                ),
                (f"turn {to} the (fan|blower){Z}( {by}|)", f"~(i want|i need) ({more}) (air|ventilation){Z}"),
                weight=0.6,
            )
        )
    return rules


def _switches(name: str, slot: str, base: Fields, weight: float) -> list[Rule]:
    on = Rule(
        f"{name}_on",
        {**base, "on": True},
        (
            f"(turn|switch) on the {slot}",
            f"(turn|switch|put) the {slot} on",
            f"(activate|enable|start) the {slot}",
            f"~(the |){slot} on",
            f"~(i need|i want) the {slot}( on|)",
        ),
        (f"~(let's have|i'd like) the {slot} on", f"get the {slot} (on|started)"),
        weight,
    )
    off = Rule(
        f"{name}_off",
        {**base, "on": False},
        (
            f"(turn|switch|shut) off the {slot}",
            f"(turn|switch) the {slot} off",
            f"(deactivate|disable|stop) the {slot}",
            f"~(the |){slot} off",
            f"~(i don't need|no more) (the |){slot}",
        ),
        (f"(shut|put) the {slot} off", f"~i don't want the {slot}( on|)"),
        weight,
    )
    return [on, off]


def _seats() -> list[Rule]:
    base: Fields = {"act": "seat_heat", "seat": "driver"}
    heat = "(seat heating|seat heater|seat warmer)"
    return [
        Rule(
            "seat_heat",
            base,
            (
                f"(set|turn|put) the {heat} (for|of|on) {{seat}} to (level |){{seatlevel}}",
                f"~{heat} (for|of|on) {{seat}} (to |)(level |){{seatlevel}}",
                "(heat|warm) {seat} (to|at|on) (level |){seatlevel}",
                f"~(i want|give me) {heat} (level |){{seatlevel}} (for|on) {{seat}}",
            ),
            (
                "(set|put) {seat} heating to (level |){seatlevel}",
                f"(adjust|change) the {heat} (for|of|on) {{seat}} to {{seatlevel}}",
            ),
        ),
        Rule(
            "seat_heat_on",
            {**base, "level": 2},
            (
                "(warm|heat) up {seat}",
                "(heat|warm) {seat}",
                f"(turn|switch) on the {heat} (for|of|on) {{seat}}",
                "start (heating|warming) {seat}",
            ),
            ("(warm|heat) {seat} up", f"(activate|start) the {heat} (for|of|on) {{seat}}"),
            weight=0.7,
        ),
        Rule(
            "seat_heat_off",
            {**base, "level": 0},
            (
                "(stop|quit) (heating|warming) {seat}",
                f"(turn|switch|shut) off the {heat} (for|of|on) {{seat}}",
                f"~no {heat} (for|on) {{seat}}",
            ),
            (
                f"(stop|deactivate) the {heat} (for|of|on) {{seat}}",
                f"(turn|switch) the {heat} (for|of|on) {{seat}} off",
            ),
            weight=0.7,
        ),
        Rule(
            "massage",
            {"act": "massage", "seat": "driver", "on": True},
            (
                "(start|turn on|switch on) the massage (for|in|on) {seat}",
                "massage (for|in|on) {seat}( please|)",
                "activate massage (for|in|on) {seat}",
            ),
            ("(enable|activate) the massage (for|in|on) {seat}",),
            weight=0.4,
        ),
        *(
            Rule(
                f"seat_{move}",
                {"act": "seat", "seat": "driver", "dir": move},
                (f"move {{seat}} {words}", f"(slide|push) {{seat}} {words}", f"~{{seat}} {words}"),
                (f"(bring|shift) {{seat}} {words}", f"move {{seat}} a (bit|little) {words}"),
                weight=0.25,
            )
            for move, words in (
                ("forward", "(forward|forwards)"),
                ("back", "(back|backwards)"),
                ("up", "(up|higher)"),
                ("down", "(down|lower)"),
            )
        ),
    ]


def _openings() -> list[Rule]:
    rules: list[Rule] = []
    for act, noun, up, down in (
        ("window", "{win}", "|roll up|wind up", "|roll down|wind down|lower"),
        ("sunroof", "the (sunroof|sun roof|roof|moonroof)", "", "|slide open"),
    ):
        base: Fields = {"act": act, "zone": "all"} if act == "window" else {"act": act}
        some = "(a bit|a little|slightly|a crack)"
        plans: list[tuple[str, int | None, tuple[str, ...], tuple[str, ...]]] = [
            (
                "open",
                100,
                (
                    f"(open{down}) {noun}",
                    f"(open{down}) {noun} (all the way|completely)",
                    f"~i want {noun} open",
                ),
                (f"(get|have) {noun} (open|opened)", f"(open {noun} fully|fully open {noun})"),
            ),
            (
                "close",
                0,
                (
                    f"(close|shut{up}) {noun}",
                    f"(close|shut{up}) {noun} (all the way|completely)",
                    f"~i want {noun} (closed|shut)",
                ),
                (f"(get|have) {noun} (closed|shut)", f"(close {noun} fully|fully close {noun})"),
            ),
            (
                "half",
                50,
                (f"(open{down}) {noun} (halfway|half way|half)", f"half open {noun}"),
                (f"(put|set) {noun} (halfway|half way)( open|)",),
            ),
            (
                "crack",
                10,
                (f"crack {noun}( open|)", f"(open{down}) {noun} {some}"),
                (f"(get|have) {noun} open {some}", f"~i want {noun} open {some}"),
            ),
            (
                "pos",
                None,
                (
                    f"(open{down}) {noun} (to |){{pos}} {{percent}}",
                    f"(set|put|move) {noun} to {{pos}} {{percent}}",
                    f"~{noun} (to|at) {{pos}} {{percent}}",
                ),
                (f"~i want {noun} (at|open) {{pos}} {{percent}}", f"bring {noun} to {{pos}} {{percent}}"),
            ),
        ]
        for what, pos, train, held in plans:
            fields = base if pos is None else {**base, "pos": pos}
            rules.append(Rule(f"{act}_{what}", fields, train, held, 0.8 if act == "window" else 0.4))
    return rules


def _lights() -> list[Rule]:
    base: Fields = {"act": "light", "which": "ambient"}
    amb = "(ambient light|ambient lighting|mood light)"
    return [
        *_switches("light", "{light}", {"act": "light"}, 1.0),
        Rule(
            "light_color",
            base,
            (
                f"(set|turn|change|make) the {amb} (to |){{color}}",
                f"~{{color}} {amb}( please|)",
                f"~i want {{color}} {amb}",
                "make the cabin {color}",
            ),
            (f"(switch|put) the {amb} to {{color}}", f"give me {{color}} {amb}"),
            weight=0.7,
        ),
        Rule(
            "light_level",
            {"act": "light"},
            (
                "(dim|set|put) the {light} to {bright} {percent}",
                "~{light} (at|to) {bright} {percent}",
                "~i want the {light} at {bright} {percent}",
            ),
            (
                "(turn|bring) the {light} to {bright} {percent}",
                "(keep|run) the {light} at {bright} {percent}",
            ),
            weight=0.8,
        ),
    ]


def _wipers() -> list[Rule]:
    rules = []
    modes = {
        "slow": "slow|low|low speed",
        "fast": "fast|high|high speed",
        "auto": "auto|automatic|automatic mode",
        "off": "off",
    }
    for zone, wip in (("front", "the (front |)wipers"), ("rear", "the (rear|back) wiper")):
        for mode, words in modes.items():
            train = (
                [f"(set|put|turn|switch) {wip} (to|on) ({words})"]
                if mode != "off"
                else [f"(turn|switch|shut) off {wip}", f"(turn|switch|put) {wip} off", f"stop {wip}"]
            )
            held = [f"~i want {wip} (on|to) ({words})"] if mode != "off" else [f"~i don't (need|want) {wip}"]
            train.append(f"~{wip.removeprefix('the ')} ({words})")
            held.append(f"(get|have) {wip} {words.split('|')[0]}")
            rules.append(
                Rule(
                    f"wiper_{zone}_{mode}",
                    {"act": "wiper", "zone": zone, "mode": mode},
                    tuple(train),
                    tuple(held),
                    0.25,
                )
            )
    wash = Rule(
        "wash",
        {"act": "wiper", "zone": "front", "mode": "wash"},
        ("(wash|clean) the (windshield|windscreen)", "spray the (windshield|windscreen)"),
        ("(get|have) the (windshield|windscreen) (washed|cleaned)",),
        0.3,
    )
    return [*rules, wash]


CABIN_COMFORT: list[Rule] = [
    Rule(
        "climate_set",
        {"act": "climate", "zone": "all"},
        (
            f"(set|put|change|adjust) the (temperature|temp|heat|climate){Z} to {{temp}}",
            f"(set it to|make it|keep it at) {{tempu}}{Z}",
            f"~i (want|would like|need) {{tempu}}{Z}",
            f"~{{tempu}}{Z}( please|)",
            "(bring|get) the (cabin|temperature) to {temp}",
            f"~(climate|climate control|temperature) (to |){{temp}}{Z}",
            f"~(can we have|let's have|give me) {{tempu}}{Z}",
            "(heat|cool) the (cabin|car) to {tempu}",
        ),
        (
            f"~i want the (temperature|temp){Z} at {{temp}}",
            f"(change|adjust) the (climate control|cabin temperature){Z} to {{temp}}",
            f"~i'd like {{tempu}}{Z}",
            "(bring|get) the car to {tempu}",
        ),
        weight=1.8,
    ),
    *_climate_shift(True),
    *_climate_shift(False),
    *_fan(),
    *_switches("device", "{dev}", {}, 1.3),
    *_seats(),
    *_openings(),
    *_lights(),
    *_wipers(),
]
