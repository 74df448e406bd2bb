"""The slots of the patterns: zones, seats, amounts with units, names."""

from __future__ import annotations

from collections.abc import Sequence

from .grammar import Draw, Fields, Slot, choice, fields_choice
from .wording import Number, say_number

PLACES = (
    "home|work|the airport|the train station|the nearest gas station|the nearest charging station|"
    "the hospital|the city center|the office|the gym|the supermarket|the pharmacy|the beach|the mall|"
    "the school|the museum|the stadium|the post office|the bank|the zoo|the harbor|the library|the castle|"
    "the market|Main Street|Park Avenue|Berlin|Paris|London|Madrid|Vienna|Rome|Oslo|Dublin"
).split("|")
CONTACTS = (
    "Anna|Bob|Carlos|Diana|Emma|Frank|Grace|Henry|Ivan|Julia|Kevin|Laura|Martin|Nina|Oscar|Paul|Rosa|Sam|"
    "Tina|Victor|mom|dad|my wife|my husband|my boss|the office|grandma|the doctor|my sister|my brother"
).split("|")
GENRES = ("jazz|rock|pop|classical|blues|techno|country|reggae|metal|folk|soul|disco").split("|")
COLORS = ("red|green|blue|white|orange|purple|yellow|pink").split("|")
STEPS_BAR = [n / 2 if n % 2 else n // 2 for n in range(1, 25)]

_CZONE = {
    "rear": "in the back|in the rear|for the back seats|back there|for the rear passengers|for the back row|"
    "for the people in the back|at the back|for the rear seats|on the back seats|in the second row",
    "front": "in the front|up front|for the front seats|in the front row|at the front|for the front row|"
    "on the front seats|for the people in front",
    "driver": "on my side|on the driver side|for the driver|for me|on the driver's side|for my side|on the driver seat",
    "passenger": "on the passenger side|for the passenger|for my passenger|on my passenger's side|"
    "for the passenger side|on the passenger's side|for the passenger seat",
    "all": "everywhere|in the whole car|in the cabin|in here|for everyone|in the car|in the entire car|"
    "in the whole cabin|for all of us|throughout the car|in all zones",
}
_WIN = {
    "all": "the windows|all windows|all the windows|every window",
    "driver": "my window|the driver window|the driver's window|the window on my side",
    "passenger": "the passenger window|the window on the passenger side|the passenger's window",
    "rear": "the rear windows|the back windows|the windows in the back",
    "front": "the front windows|the windows in the front",
    "front-left": "the front left window|the left front window",
    "front-right": "the front right window|the right front window",
    "rear-left": "the rear left window|the left rear window|the back left window",
    "rear-right": "the rear right window|the right rear window|the back right window",
}
_SEAT = {
    "driver": "my seat|the driver seat|the driver's seat",
    "passenger": "the passenger seat|the passenger's seat|my passenger's seat",
    "rear": "the back seats|the rear seats|the seats in the back",
    "rear-left": "the rear left seat|the left rear seat|the back left seat",
    "rear-right": "the rear right seat|the right rear seat|the back right seat",
    "all": "all seats|all the seats|every seat",
}
_DOOR = {
    "all": "the doors|all doors|all the doors|the car",
    "driver": "my door|the driver door|the driver's door",
    "passenger": "the passenger door|the passenger's door",
    "rear": "the rear doors|the back doors",
    "rear-left": "the rear left door|the left rear door|the back left door",
    "rear-right": "the rear right door|the right rear door|the back right door",
}
_DEVICES: list[tuple[Fields, str]] = [
    ({"act": "ac"}, "air conditioning|ac|air conditioner|aircon|a c"),
    ({"act": "recirc"}, "air recirculation|recirculation|recirculated air"),
    (
        {"act": "defrost", "zone": "rear"},
        "rear defroster|rear window heater|back window defroster|rear defrost",
    ),
    (
        {"act": "defrost", "zone": "front"},
        "windshield defroster|front defroster|windshield heater|front defrost",
    ),
    (
        {"act": "wheel_heat"},
        "steering wheel heater|heated steering wheel|steering wheel heating|wheel heater",
    ),
    ({"act": "child_lock"}, "child lock|child locks|child safety lock"),
    ({"act": "wifi"}, "wifi|hotspot|wifi hotspot"),
    ({"act": "lane_assist"}, "lane assist|lane keeping|lane keep assist"),
    ({"act": "camera"}, "parking camera|rear camera|backup camera|camera"),
    ({"act": "coolant"}, "coolant|coolant flow|cutting fluid"),
    ({"act": "vacuum"}, "vacuum|chip extractor|dust extractor|dust extraction"),
    ({"act": "beacon"}, "warning beacon|beacon|signal lamp"),
]
_LIGHTS = {
    "reading": "reading light|reading lamp|map light",
    "dome": "dome light|interior light|cabin light|inside light",
    "ambient": "ambient light|ambient lighting|mood light",
    "head": "headlights|head lights|low beams",
    "high": "high beams|high beam|full beams",
    "fog": "fog lights|fog lamps|foglights",
    "hazard": "hazard lights|hazards|emergency flashers",
}
_PARTS = {
    "trunk": "trunk|boot|tailgate",
    "hood": "hood|bonnet",
    "fuel_cap": "fuel flap|gas cap|fuel cap|fuel door",
    "charge_port": "charge port|charging port|charging flap",
    "glovebox": "glove box|glovebox|glove compartment",
}
_QUERIES = {
    "fuel": "fuel level|amount of fuel|fuel",
    "range": "range|remaining range|driving range",
    "battery": "battery level|battery charge|state of charge",
    "tires": "tire pressure|tyre pressure|pressure in the tires",
    "outside_temp": "outside temperature|temperature outside|outdoor temperature",
    "speed": "current speed|speed of the car|vehicle speed",
    "oil": "oil level|oil pressure|engine oil",
    "eta": "arrival time|time of arrival|eta",
}


def amount(key: str, values: Sequence[Number], units: dict[str, str] | None = None) -> Slot:
    """Make a slot with a number and, where units are given, one of their wordings after it."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        value = draw.rng.choice(values)
        words = say_number(abs(value), draw.rng)
        if not units:
            return words, {key: value}
        unit = draw.rng.choice(list(units))
        return f"{words} {draw.rng.choice(units[unit].split('|'))}", {key: value, "unit": unit}

    return fill


def cabin_temp(bare: bool) -> Slot:
    """Make a slot with a cabin temperature; without a named unit 60 and more are Fahrenheit."""
    words_of = {
        "C": "degrees|degrees|degrees celsius|celsius|degrees C|C",
        "F": "degrees|degrees fahrenheit|fahrenheit|degrees F|F",
    }

    def fill(draw: Draw) -> tuple[str, Fields]:
        unit = "C" if draw.rng.random() < 0.65 else "F"
        value = draw.rng.randint(16, 28) if unit == "C" else draw.rng.randint(60, 84)
        words = say_number(value, draw.rng)
        if not (bare and draw.rng.random() < 0.25):
            words += " " + draw.rng.choice(words_of[unit].split("|"))
        return words, {"temp": value, "unit": unit}

    return fill


def shift(sign: int, adjective: str) -> Slot:
    """Make a slot such as "two degrees warmer", "a bit warmer" or "warmer"."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        rng = draw.rng
        word = rng.choice(adjective.split("|"))
        kind = rng.random()
        if kind < 0.45:
            words, fields = degrees(sign, "")(draw)
            return f"{words} {word}", fields
        if kind < 0.6:
            return f"{rng.choice(['much', 'a lot', 'way'])} {word}", {"delta": 3 * sign, "unit": "C"}
        lead = rng.choice(["", "a bit ", "a little ", "slightly ", "a touch "])
        return lead + word, {"delta": sign, "unit": "C"}

    return fill


def degrees(sign: int, lead: str) -> Slot:
    """Make a slot such as "by two degrees"."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        rng = draw.rng
        value = rng.randint(1, 6)
        noun = "degree" if value == 1 else "degrees"
        unit, tail = rng.choice([("C", ""), ("C", ""), ("C", " celsius"), ("F", " fahrenheit")])
        number = "a" if value == 1 and rng.random() < 0.3 else say_number(value, rng)
        return f"{lead}{number} {noun}{tail}", {"delta": sign * value, "unit": unit}

    return fill


def steps(sign: int, key: str = "delta", top: int = 5) -> Slot:
    """Make a slot such as "by two" or "three steps"."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        value = draw.rng.randint(1, top)
        nouns = ("step", "notch", "level") if value == 1 else ("steps", "notches", "levels")
        lead, tail = draw.rng.choice([("by ", ""), ("by ", " " + draw.rng.choice(nouns)), ("", " " + nouns[0])])
        return f"{lead}{say_number(value, draw.rng)}{tail}", {key: sign * value}

    return fill


def level(top: int, names: dict[int, str]) -> Slot:
    """Make a slot with a level up to `top`, some of which have names."""

    def fill(draw: Draw) -> tuple[str, Fields]:
        if draw.rng.random() < 0.25:
            value = draw.rng.choice(list(names))
            return draw.rng.choice(names[value].split("|")), {"level": value}
        value = draw.rng.randint(1, top)
        return say_number(value, draw.rng), {"level": value}

    return fill


def numbered(noun: str, top: int) -> Slot:
    """Make a slot that names one of several machines: "pump two", "the second pump"; "the pump" sets no id."""
    ordinals = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]

    def fill(draw: Draw) -> tuple[str, Fields]:
        rng = draw.rng
        value = rng.randint(1, top)
        name = rng.choice(noun.split("|"))
        kind = rng.random()
        if kind < 0.12:
            return f"the {name}", {}
        if kind < 0.3:
            return f"the {ordinals[value - 1]} {name}", {"id": value}
        if kind < 0.45:
            return f"{name} number {say_number(value, rng)}", {"id": value}
        return f"{name} {say_number(value, rng)}", {"id": value}

    return fill


def _names(key: str, names: Sequence[str], strip: str = "the |my ") -> Slot:
    def value_of(name: str) -> str:
        for article in strip.split("|"):
            name = name.removeprefix(article)
        return name

    return choice(key, {value_of(name): name for name in names})


SLOTS: dict[str, Slot] = {
    "czone": choice("zone", _CZONE),
    "win": choice("zone", _WIN),
    "seat": choice("seat", _SEAT),
    "door": choice("zone", _DOOR),
    "dev": fields_choice(_DEVICES),
    "light": choice("which", _LIGHTS),
    "part": choice("act", _PARTS),
    "query": choice("what", _QUERIES),
    "temp": cabin_temp(bare=True),
    "tempu": cabin_temp(bare=False),
    "warmer": shift(1, "warmer|warmer|hotter"),
    "cooler": shift(-1, "cooler|colder"),
    "byup": degrees(1, "by "),
    "bydown": degrees(-1, "by "),
    "degup": degrees(1, ""),
    "degdown": degrees(-1, ""),
    "stepsup": steps(1),
    "stepsdown": steps(-1),
    "fanlevel": level(7, {7: "max|maximum|full", 1: "low|minimum", 4: "medium", 6: "high"}),
    "seatlevel": level(3, {3: "high|max|maximum", 1: "low|minimum", 2: "medium"}),
    "vol": amount("level", range(1, 41)),
    "pos": amount("pos", range(5, 100, 5), None),
    "bright": amount("level", range(5, 101, 5), None),
    "color": choice("color", {c: c for c in COLORS}),
    "genre": choice("genre", {g: g for g in GENRES}),
    "freq": amount("freq", [n / 10 if n % 10 else n // 10 for n in range(880, 1080)]),
    "place": _names("to", PLACES, "the |nearest "),
    "contact": _names("to", CONTACTS),
    "cruise": amount("speed", range(30, 135, 5), {"km/h": "kilometers per hour|km/h|kph", "mph": "miles per hour|mph"}),
    "conveyor": numbered("conveyor|belt|conveyor belt", 4),
    "pump": numbered("pump", 6),
    "valve": numbered("valve", 8),
    "heater": numbered("heater|oven", 3),
    "mixer": numbered("mixer|stirrer", 3),
    "joint": amount("joint", range(1, 7)),
    "beltspeed": amount("speed", range(5, 101, 5), {"%": "percent|%", "m/min": "meters per minute|m/min"}),
    "rpm": amount("speed", range(100, 6001, 100), {"rpm": "rpm|rpm|revolutions per minute|r p m"}),
    "rpm_more": amount("delta", range(50, 1001, 50), {"rpm": "rpm|rpm|revolutions per minute"}),
    "rpm_less": amount("delta", range(-50, -1001, -50), {"rpm": "rpm|rpm|revolutions per minute"}),
    "mixrpm": amount("speed", range(20, 601, 20), {"rpm": "rpm|rpm|revolutions per minute"}),
    "flow": amount("flow", [*range(1, 61), 0.5, 1.5, 2.5, 3.5], {"l/min": "liters per minute|liters a minute|l/min"}),
    "bar": amount("pressure", STEPS_BAR, {"bar": "bar"}),
    "mm": amount("dist", [*range(1, 31), *range(35, 301, 5)], {"mm": "millimeters|mm|mm"}),
    "deg": amount("angle", range(5, 181, 5), {"deg": "degrees"}),
    "force": amount("level", range(10, 101, 5), None),
    "ovenc": amount(
        "temp",
        range(40, 301, 5),
        {"C": "degrees|celsius|degrees celsius", "F": "fahrenheit|degrees fahrenheit"},
    ),
    "time": amount("time", range(2, 61), {"s": "seconds|seconds|sec", "min": "minutes"}),
    "armdir": choice("dir", {d: d for d in ("left", "right", "up", "down", "forward", "back")}),
    "turn": choice("dir", {"cw": "clockwise", "ccw": "counterclockwise|counter clockwise|anticlockwise"}),
    "percent": lambda draw: (draw.rng.choice(["percent", "percent", "%"]), {}),
}
