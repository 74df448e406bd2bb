"""What can be said about the climate and the fan."""

from __future__ import annotations

from .frames import OFF, SET, fit
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
        ~would you mind setting the (temperature|temp){czone?} to {temp}
        ~i prefer {tempu}{czone?}
        ~{tempu} would be (nice|good|great){czone?}
        ~{tempu} is (right|perfect|comfortable){czone?}
        ~we like it at {tempu}{czone?}
        ~i like it at {tempu}{czone?}
        ~{tempu} feels (right|good){czone?}
        aim for {tempu}{czone?}
        (program|fix) the (temperature|climate){czone?} at {temp}
        (warm|heat) (it|things) up to {tempu}{czone?}
        cool (it|things) down to {tempu}{czone?}
        ~the (cabin|car) should be (at |){tempu}
        ~(can|could) you do {tempu}{czone?}
        let it be {tempu}{czone?}
        ~make that {tempu}{czone?}
        ~my (temperature|comfort temperature) is {tempu}
        ~it needs to be {tempu}{czone?}
        ~the climate control should be at {temp}{czone?}
        have the (temperature|climate){czone?} at {temp}
        make the temperature {temp}{czone?}
        ~temperature {temp}{czone?}
        air at {tempu}{czone?}
        ~i('d| would) be (happy|comfortable) with {tempu}{czone?}
        bring it to {tempu}{czone?}
        get it to {tempu}{czone?}
        don't go (above|below|over) {tempu}{czone?}
        ~{tempu} {czone} would be nice
    """
    return Rule("climate_set", {"act": "climate", "zone": "all"}, text, 1.9)


def _climate_shift(up: bool) -> Rule:
    if up:
        one, two, adj, by, deg, more = "raise", "increase", "{warmer}", "{byup}", "{degup}", "more"
        to, sign, plain = "up", 1, "warmer"
        heat = "warm (it|things) up{czone?}( {byup}|)\nadd {degup}{czone?}\n(warm|heat) up the (cabin|car)( {byup}|)"
    else:
        one, two, adj, by, deg, more = "lower", "(reduce|decrease)", "{cooler}", "{bydown}", "{degdown}", "less"
        to, sign, plain = "down", -1, "cooler"
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
        ~a little {plain} would be nice{{czone?}}
        ~it would be (nice|good) to have it {adj}{{czone?}}
        ~how about (a bit |){plain}{{czone?}}
        ~would you mind making it {adj}{{czone?}}
        ~why isn't it {plain}{{czone?}}
        ~it isn't {plain} enough{{czone?}}
        ~i like it {adj}{{czone?}}
        let it be {adj}{{czone?}}
        let it get {adj}{{czone?}}
        ~it needs to be {adj}{{czone?}}
        ~it (has|ought) to be {adj}{{czone?}}
        ~the (cabin|car|air) should be {adj}
        ~(the air|the temperature) could be {adj}{{czone?}}
        make the (cabin|car|air) {adj}
        ~we('d| would) like it {adj}{{czone?}}
        change it to {adj}{{czone?}}
        ~{deg} {plain} would be nice{{czone?}}
        ~{deg} {more} would be (nice|good){{czone?}}
        ~{deg} {more} heat{{czone?}}
        nudge the (temperature|temp|heat) {to}{{czone?}}( {by}|)
        get the (temperature|temp|heat) {to}{{czone?}}( {by}|)
        (shift|adjust) the (temperature|heat) {to}{{czone?}} {by}
        have the (temperature|heat) {to} {by}{{czone?}}
        ~(temperature|temp|heat) {to}{{czone?}}( please|)
        ~the (heat|temperature) should be {to}( {by}|){{czone?}}
        {one} it{{czone?}} {by}
        change the (temperature|temp){{czone?}} {by} {to}
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
        ~it's ({words}) right now{{czone?}}
        ~how can it be ({words}){{czone?}}
        ~i can't stand it it's ({words}){{czone?}}
        ~i don't like it it's ({words}){{czone?}}
        ~i wonder why it's ({words}){{czone?}}
        ~don't you think it's ({words}){{czone?}}
        ~the temperature is ({words}){{czone?}}
        ~my passenger says it's ({words})
        ~everyone says it's ({words})
        ~(man|boy|god|wow) it's ({words}){{czone?}}
        ~it sure is ({words}){{czone?}}
        ~it's still ({words}){{czone?}}
        ~it seems ({words}){{czone?}}
        ~it seems to be ({words}){{czone?}}
        ~it's always ({words}){{czone?}}
        ~the air is ({words})
        ~it just got ({words}){{czone?}}
        ~it's gotten ({words}){{czone?}}
        ~we find it ({words}){{czone?}}
        ~what makes it ({words}){{czone?}}
        do something it's ({words}){{czone?}}
        ~feels ({words}){{czone?}}
        ~it's really ({words}){{czone?}}
        ~it must be ({words}){{czone?}}
        ~the kids say it's ({words}){{czone?}}
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
            ~i('m| am) still ({words})
            ~the kids are ({words})
            ~my (wife|husband|son|daughter|mother) is ({words})
            ~everyone is ({words})( in here| here|)
            ~everybody feels ({words})
            ~i think i'm ({words})
            ~the (baby|dog) is ({words})
            ~do something i'm ({words})
            ~help i'm ({words})
            ~i was ({words}) all day
            ~my (hands|feet) are ({words})
            ~why am i ({words})
            ~i('m| am) just ({words})
            ~my passenger is ({words})
            ~we all feel ({words})
            ~my passenger feels ({words})
            ~i don't want to be ({words})
            ~i('m| am) simply ({words})
            ~(man|boy|god|wow) i'm ({words})
            ~i('m| am) always ({words})
            ~we('re| are) still ({words})
            ~some of us are ({words})
            ~the passengers are ({words})
            ~grandma is ({words})
            ~i('m| am) ({words}) do something
            ~my (hands|feet|legs) feel ({words})
            ~i must say i'm ({words})
            ~honestly i'm ({words})
            ~the children are ({words})
            ~it makes me feel ({words})
            ~i('ve| have) been ({words}) for an hour
            ~everyone in the car is ({words})
            ~i feel like i'm ({words})
            ~aren't you ({words}) too
            ~my friend is ({words})
            ~i keep getting ({words})
            ~i('m| am) getting really ({words})
            ~you know i'm ({words})
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
        ~would you mind setting the (fan|blower) speed to {fanlevel}{czone?}
        ~fan speed {fanlevel}{czone?}
        blow at (level |){fanlevel}{czone?}
        ~(air|air flow) (at|on) (level |){fanlevel}{czone?}
        ~the fan speed should be {fanlevel}{czone?}
        make the fan speed {fanlevel}{czone?}
        get the ventilation to (level |){fanlevel}{czone?}
        (change|adjust) the fan speed{czone?} to (level |){fanlevel}
        ~i('d| would) like the fan speed at {fanlevel}{czone?}
        ~{czone} set the (fan|blower) to (level |){fanlevel}
        ~blower on (level |){fanlevel}{czone?}
    """
    off = """
        stop the ventilation{czone?}
        (turn|switch) off the ventilation{czone?}
        ~no (more |)(fan|blower){czone?}
        stop (blowing|blowing air){czone?}
        ~{czone} (fan|blower) off
        ~enough (air|fan){czone?}
        ~the (fan|blower) is annoying turn it off{czone?}
        no more (air|blowing){czone?}
        cut the (air|ventilation|air flow){czone?}
        ~i don't want (air|wind) in my face
        ~there's too much noise from the fan turn it off
        shut off the (air|ventilation|air flow){czone?}
        (turn|switch) the (air|ventilation) off{czone?}
        ~ventilation off{czone?}
        set the (fan|blower) to (zero|off){czone?}
        ~{czone} no more (fan|blower)
        ~(fan|blower) speed zero{czone?}
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
            ~{more} (air|ventilation) would be (nice|good){{czone?}}
            ~we('d| would) like {more} (air|ventilation|fan){{czone?}}
            ~(can|could) we have {more} (air|ventilation|fan){{czone?}}
            ~how about {more} (air|ventilation|fan){{czone?}}
            ~would you mind turning the (fan|blower) {to}{{czone?}}
            ~there (should|could) be {more} (air|ventilation){{czone?}}
            blow {more}{{czone?}}
            make it blow {more}{{czone?}}
            let the (fan|blower) blow {more}{{czone?}}
            ~the (fan|blower) needs to go {to}( {by}|){{czone?}}
            ~(fan|blower) speed {to}( {by}|){{czone?}}
            get the (fan|blower) {to}{{czone?}}( {by}|)
            nudge the (fan|blower) {to}{{czone?}}( {by}|)
            ~the (fan|blower) should be {to}( {by}|){{czone?}}
            ~it needs {more} (air|ventilation){{czone?}}
            ~i could use {more} (air|ventilation){{czone?}}
            set the (fan|blower) {by} {to}{{czone?}}
            take the (fan|blower) {to}{{czone?}}( {by}|)
            ~the air flow should go {to}{{czone?}}( {by}|)
            turn the (air|air flow|ventilation) {to}{{czone?}}( {by}|)
            {one} the (air|ventilation){{czone?}}( {by}|)
            ~ventilation {to}( {by}|){{czone?}}
            ~i think we need {more} (air|ventilation){{czone?}}
            ~it's time for {more} air{{czone?}}
            ~we could use {more} (air|ventilation){{czone?}}
            let in {more} air{{czone?}}
            make the (air|ventilation) {more}{{czone?}}
            dial {to} the (fan|blower){{czone?}}( {by}|)
            bring {to} the (fan|blower){{czone?}}( {by}|)
            change the fan{{czone?}} {by} {to}
            ~the blower could blow {more}{{czone?}}
            adjust the fan {to}{{czone?}}( {by}|)
            move the fan speed {to}{{czone?}}( {by}|)
        """
        rules.append(Rule(f"fan_{to}", {**base, "delta": sign}, text, 0.7))
    return rules


CLIMATE: list[Rule] = [_climate_set(), _climate_shift(True), _climate_shift(False), *_feelings(), *_fan()]
