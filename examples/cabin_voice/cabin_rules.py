"""What can be said about the climate, the seats and the switches of the cabin."""

from __future__ import annotations

from .frames import OFF, ON, SET, fit
from .grammar import Fields, Rule


def _climate_set() -> Rule:
    text = """
        (set|put|change|adjust) the (temperature|temp|heat|climate){czone?} to {temp}
        (bring|get|take) the (temperature|temp|heat){czone?} to {temp}
        (bring|get|take) the (cabin|car) to {tempu}
        set it to {tempu}{czone?}
        make it {tempu}{czone?}
        (keep|hold|leave) it at {tempu}{czone?}
        ~i (want|need) {tempu}{czone?}
        ~i('d| would) like {tempu}{czone?}
        ~{tempu}{czone?}( please|)
        ~{czone} {tempu}( please|)
        ~{czone} set the (temperature|temp) to {temp}
        ~{czone} (i want|make it|i'd like) {tempu}
        ~(climate|climate control|temperature){czone?} (to|at) {temp}
        ~let's have {tempu}{czone?}
        ~(can|could) we (have|get) {tempu}{czone?}
        give (me|us) {tempu}{czone?}
        (heat|cool) the (cabin|car) to {tempu}
        ~i want the (temperature|temp){czone?} at {temp}
        ~i'd like the (temperature|climate){czone?} at {temp}
        ~the (temperature|temp){czone?} should be {temp}
        (change|adjust) the (climate control|cabin temperature){czone?} to {temp}
        (keep|hold|maintain) {tempu}{czone?}
        dial (in |){tempu}{czone?}
        (set|keep) the (cabin|car) at {tempu}
        ~it should be {tempu}{czone?}
        ~(can|could) we have it at {tempu}{czone?}
        ~we (want|need|would like) {tempu}{czone?}
        go (up |down |)to {tempu}{czone?}
        ~(how about|what about) {tempu}{czone?}
        ~target temperature{czone?} {temp}
        set {tempu}{czone?}
        turn the (heat|temperature) (up |down |){czone?} to {temp}
    """
    return Rule("climate_set", {"act": "climate", "zone": "all"}, text, 1.9)


def _climate_shift(up: bool) -> Rule:
    if up:
        one, two, adj, by, deg, more = "raise", "increase", "{warmer}", "{byup}", "{degup}", "more"
        to, sign = "up", 1
        heat = "warm (it|things) up{czone?}( {byup}|)\nadd {degup}{czone?}\n(warm|heat) up the (cabin|car)( {byup}|)"
    else:
        one, two, adj, by, deg, more = "lower", "(reduce|decrease)", "{cooler}", "{bydown}", "{degdown}", "less"
        to, sign = "down", -1
        heat = "cool (it|things) down{czone?}( {bydown}|)\ntake off {degdown}{czone?}\ncool down the (cabin|car)( {bydown}|)"
    text = f"""
        make it {adj}{{czone?}}
        ~{{czone}} make it {adj}
        ~{{czone}} {adj}( please|)
        {one} the (temperature|temp|heat){{czone?}}( {by}|)
        {two} the (temperature|temp|heat){{czone?}}( {by}|)
        turn {to} the (temperature|temp|heat){{czone?}}( {by}|)
        turn the (heat|temperature) {to}{{czone?}}( {by}|)
        dial the (heat|temperature) {to}{{czone?}}( {by}|)
        dial {to} the (temp|temperature|heat){{czone?}}( {by}|)
        ~i (need|want) it {adj}{{czone?}}
        ~i('d| would) like it {adj}{{czone?}}
        ~it (should|could) be {adj}{{czone?}}
        ~(can we get|could we have) it {adj}{{czone?}}
        ~(temperature|temp) {to} {by}{{czone?}}
        ~{adj}{{czone?}}
        ~let's (have|make) it {adj}{{czone?}}
        {one} the (cabin temperature|climate){{czone?}} {by}
        {two} the (cabin temperature|climate){{czone?}} {by}
        (bring|move|take) the (temperature|temp) {to}{{czone?}}( {by}|)
        get it {adj}{{czone?}}
        ~we (need|want) it {adj}{{czone?}}
        ~{deg} {to}{{czone?}}( please|)
        ~{deg} {more}{{czone?}}( please|)
        ~i want {deg} {more}{{czone?}}
        ~(the temperature|it) should go {to} {by}{{czone?}}
        set (it|the temperature) {adj}{{czone?}}
        put (it|the temperature|the heat) {to} {by}{{czone?}}
        go {to} {by}{{czone?}}
    """
    return Rule(f"climate_{to}", {"act": "climate", "zone": "all", "delta": sign, "unit": "C"}, text + heat, 1.6)


def _feel(name: str, words: str, delta: int, weight: float) -> Rule:
    text = f"""
        ~(it's|it is) ({words}){{czone?}}
        ~it feels ({words}){{czone?}}
        ~why is it ({words}){{czone?}}
        ~it has become ({words}){{czone?}}
        ~it got ({words}){{czone?}}
        ~it's getting ({words}){{czone?}}
        ~{{czone}} (it's|it is) ({words})
        ~i find it ({words}){{czone?}}
        ~this is ({words})
        ~the (car|cabin) is ({words})
        ~(i think|i feel like) it's ({words}){{czone?}}
        ~(isn't|is) it ({words}){{czone?}}
        ~({words}){{czone?}} isn't it
        ~it's become ({words}){{czone?}}
        ~(we feel|i feel) it's ({words})
        ~it is ({words}) now{{czone?}}
    """
    return Rule(name, {"act": "climate", "zone": "all", "delta": delta, "unit": "C"}, text, weight)


def _feelings() -> list[Rule]:
    rules = []
    for name, words, delta in (("cold", "freezing|too cold|so cold", 2), ("hot", "boiling|too hot|so hot", -2)):
        text = f"""
            ~(i'm|i am) ({words})
            ~i feel ({words})
            ~(we are|we're) ({words})
            ~i'm (really |)({words})( here|)
            ~i('m| am) getting ({words})
            ~(we're|we are) all ({words})
        """
        base: Fields = {"act": "climate", "zone": "all", "delta": delta, "unit": "C"}
        rules.append(Rule(f"person_{name}", base, text, 0.3))
    return [
        *rules,
        _feel("feel_cold", "too cold|freezing|way too cold|so cold", 2, 0.5),
        _feel("feel_hot", "too hot|too warm|boiling|so hot", -2, 0.5),
        _feel("feel_chilly", "a bit chilly|a little cold|a bit cold|chilly", 1, 0.4),
        _feel("feel_warm", "a bit warm|a little hot|a bit hot|warm", -1, 0.4),
    ]


def _fan() -> list[Rule]:
    base: Fields = {"act": "fan", "zone": "all"}
    x, zone = "the (fan|blower)", "{czone?}"
    level = """
        ~(fan|fan speed|blower) (level |){fanlevel}{czone?}
        run the (fan|blower) at (level |speed |){fanlevel}{czone?}
        ~i want (fan|blower) (level|speed) {fanlevel}{czone?}
        ~(give me|i need) (fan|blower) (level|speed) {fanlevel}{czone?}
        ~(ventilation|air flow) (to|at) {fanlevel}{czone?}
        set the (fan speed|air flow|ventilation){czone?} to (level |){fanlevel}
        ~{czone} (fan|blower) (to|at) (level |){fanlevel}
        ~level {fanlevel} on the (fan|blower){czone?}
        (turn|put) the (fan|blower){czone?} (up |down |)to (level |speed |){fanlevel}
        let the (fan|blower) (run|blow) at (level |){fanlevel}{czone?}
    """
    off = """
        stop the ventilation{czone?}
        (turn|switch) off the ventilation{czone?}
        ~no (more |)(fan|blower){czone?}
        stop (blowing|blowing air){czone?}
        ~{czone} (fan|blower) off
        ~enough (air|fan){czone?}
    """
    off_all = "\n".join(line + zone for line in fit(OFF, x).strip().splitlines())
    rules = [
        Rule("fan_set", base, fit(SET, x, "(level |speed |){fanlevel}{czone?}") + level, 1.2),
        Rule("fan_off", {**base, "level": 0}, off_all + off, 0.6),
    ]
    for to, more, one, two, by, sign in (
        ("up", "(more|stronger)", "increase", "(speed up|boost)", "{stepsup}", 1),
        ("down", "(less|weaker)", "decrease", "(slow down|reduce)", "{stepsdown}", -1),
    ):
        text = f"""
            turn the (fan|blower) {to}{{czone?}}( {by}|)
            turn {to} the (fan|blower){{czone?}}( {by}|)
            ~{more} (air|fan|ventilation){{czone?}}( please|)
            {one} the (fan|blower|air flow){{czone?}}( {by}|)
            {two} the (fan|blower|air flow){{czone?}}( {by}|)
            ~(fan|blower) {to}( {by}|){{czone?}}
            ~i (want|need) {more} (air|ventilation|fan){{czone?}}
            give me {more} (air|ventilation|fan){{czone?}}
            ~i('d| would) like {more} (air|ventilation|fan){{czone?}}
            (put|bring|dial) the (fan|blower) {to}{{czone?}}( {by}|)
            ~we need {more} (air|ventilation|fan){{czone?}}
            make the (fan|blower) {more.replace("more", "faster").replace("less", "slower")}{{czone?}}
            ~the (fan|blower) should go {to} {by}{{czone?}}
            ~{{czone}} {more} (air|fan)( please|)
            {one} the fan speed{{czone?}}( {by}|)
            {two} the fan speed{{czone?}}( {by}|)
            get {more} (air|ventilation){{czone?}}
            ~let's have {more} (air|ventilation|fan){{czone?}}
        """
        rules.append(Rule(f"fan_{to}", {**base, "delta": sign}, text, 0.7))
    return rules


def switches(name: str, slot: str, base: Fields, weight: float) -> list[Rule]:
    """Make the rules that switch a thing on and off."""
    the = f"the {slot}"
    return [
        Rule(f"{name}_on", {**base, "on": True}, fit(ON, the) + f"\n~{slot} on\n~i need some {slot}", weight),
        Rule(f"{name}_off", {**base, "on": False}, fit(OFF, the) + f"\n~{slot} off\n~no (more |){slot}", weight),
    ]


def _seat_heat() -> list[Rule]:
    base: Fields = {"act": "seat_heat", "seat": "driver"}
    heat = "(seat heating|seat heater|seat warmer)"
    at = "(for|of|on) {seat}"
    level = f"""
        ~{{seat}} heating to (level |){{seatlevel}}
        (set|put) {{seat}} heating to (level |){{seatlevel}}
        ~{heat} {at} (to |)(level |){{seatlevel}}
        (heat|warm) {{seat}} (to|at|on) (level |){{seatlevel}}
        ~i want {heat} (level |){{seatlevel}} (for|on) {{seat}}
        give (me |){heat} (level |){{seatlevel}} (for|on) {{seat}}
        heat {{seat}} with level {{seatlevel}}
        ~{heat} (to |at |level ){{seatlevel}}( please|)
        ~for {{seat}} {heat} (level |){{seatlevel}}
        (heat|warm) up {{seat}} to (level |){{seatlevel}}
        ~level {{seatlevel}} {heat} (for|on) {{seat}}
        set the {heat} to (level |){{seatlevel}}
        turn the {heat} (up |down |)to (level |){{seatlevel}} (for|on) {{seat}}
    """
    warm = f"""
        (warm|heat) up {{seat}}
        (heat|warm) {{seat}}
        (warm|heat) {{seat}} up
        start (heating|warming) {{seat}}
        ~i want {{seat}} (warm|heated)
        make {{seat}} warm
        ~{{seat}} should be (warm|heated)
        get {{seat}} (warm|heated)
        ~{{seat}} is (cold|too cold)
        ~i('d| would) like {{seat}} (warm|heated)
        (put|switch) on the {heat}
        ~a warm seat would be nice
    """
    stop = f"""
        (stop|quit) (heating|warming) {{seat}}
        ~no {heat} (for|on) {{seat}}
        ~{{seat}} is (too hot|too warm)
        ~don't (heat|warm) {{seat}}( anymore|)
        ~no more (heating|heat) (for|on) {{seat}}
        ~{{seat}} should not be heated
    """
    return [
        Rule("seat_heat", base, fit(SET, f"the {heat} {at}", "(level |){seatlevel}") + level, 1.1),
        Rule("seat_heat_on", {**base, "level": 2}, fit(ON, f"the {heat} {at}") + warm, 0.8),
        Rule("seat_heat_off", {**base, "level": 0}, fit(OFF, f"the {heat} {at}") + stop, 0.7),
    ]


def _seats() -> list[Rule]:
    massage: Fields = {"act": "massage", "seat": "driver"}
    the = "the massage (for|in|on) {seat}"
    move = """
        move {seat} @d
        (slide|push) {seat} @d
        ~{seat} @d
        (bring|shift) {seat} @d
        move {seat} a (bit|little) @d
        ~i want {seat} (further |)@d
        ~{seat} should (go|move) @d
        (get|put) {seat} (further |)@d
        (slide|shift) {seat} a (bit|little) @d
        ~i('d| would) like {seat} (further |)@d
        let {seat} (go|move) @d
        take {seat} @d
        ~{seat} a (bit|little) @d
        make {seat} go @d
        adjust {seat} @d
    """
    return [
        *_seat_heat(),
        Rule(
            "massage_on",
            {**massage, "on": True},
            fit(ON, the) + "\nmassage (for|in|on) {seat}\n~(give me|i want) a massage",
            0.4,
        ),
        Rule("massage_off", {**massage, "on": False}, fit(OFF, the) + "\n~no (more |)massage (for|in|on) {seat}", 0.25),
        *(
            Rule(f"seat_{way}", {"act": "seat", "seat": "driver", "dir": way}, move.replace("@d", words), 0.25)
            for way, words in (
                ("forward", "(forward|forwards)"),
                ("back", "(back|backwards)"),
                ("up", "(up|higher)"),
                ("down", "(down|lower)"),
            )
        ),
    ]


CABIN: list[Rule] = [
    _climate_set(),
    _climate_shift(True),
    _climate_shift(False),
    *_feelings(),
    *_fan(),
    *switches("device", "{dev}", {}, 1.5),
    *_seats(),
]
