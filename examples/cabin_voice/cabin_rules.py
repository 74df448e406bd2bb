"""What can be said about the seats and the switches of the cabin."""

from __future__ import annotations

from .climate_rules import CLIMATE
from .frames import OFF, ON, SET, fit
from .grammar import Fields, Rule

_MORE_ON = """
    ~@x on
    ~i (need|want) some @x
    ~@x( please|)
    start up @x
    (turn|switch) on @x
    (turn|switch) @x on
    activate @x
    ~we need @x( now|)
    ~@x would be (nice|good)
    ~how about @x
    ~(a little|some) @x( please|)
    ~what about @x
"""
_MORE_OFF = """
    ~@x off
    ~no (more |)@x
    (turn|switch|shut) off @x
    (turn|switch) @x off
    deactivate @x
    ~we don't need @x( now| anymore|)
    ~without @x( please|)
    ~i don't need (any |)@x
    ~enough of @x
    go without @x
"""


def switches(name: str, slot: str, base: Fields, weight: float) -> list[Rule]:
    """Make the rules that switch a thing on and off."""
    the = f"the {slot}"
    return [
        Rule(f"{name}_on", {**base, "on": True}, fit(ON, the) + _MORE_ON.replace("@x", slot), weight),
        Rule(f"{name}_off", {**base, "on": False}, fit(OFF, the) + _MORE_OFF.replace("@x", slot), weight),
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
        ~{heat} {at} on (level |){{seatlevel}}
        ~i('d| would) like {{seat}} heated (at|to) (level |){{seatlevel}}
        ~{{seat}} at heating level {{seatlevel}}
        make the {heat} {at} (level |){{seatlevel}}
        ~{{seat}} (needs|wants) heating level {{seatlevel}}
        ~the {heat} should be (at |)(level |){{seatlevel}}
        (change|adjust) {{seat}} heating to (level |){{seatlevel}}
        keep the {heat} at (level |){{seatlevel}}
        ~heat level {{seatlevel}} (for|on) {{seat}}
        (heat|warm) {{seat}} with level {{seatlevel}}
        ~let's have the {heat} at (level |){{seatlevel}}
        ~{{seat}} heater (to |at |)(level |){{seatlevel}}
        turn {{seat}} heating (up |down |)to (level |){{seatlevel}}
        use level {{seatlevel}} for the {heat}
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
        ~{{seat}} could be warmer
        ~{{seat}} (feels|is) freezing
        ~{{seat}} isn't warm
        ~{{seat}} needs (heat|heating|warming up)
        turn {{seat}} heating on
        ~{{seat}} heating( on|)( please|)
        ~(some|a little) heat (for|on) {{seat}}( please|)
        ~i want some heat (for|on) {{seat}}
        give {{seat}} some (heat|warmth)
        put some heat (in|on) {{seat}}
        let {{seat}} get warm
        ~would you mind heating {{seat}}
        ~{{seat}} would be nicer warm
        preheat {{seat}}
        begin (heating|warming) {{seat}}
        ~how about heating {{seat}}
        ~time to (heat|warm) {{seat}}
        activate {{seat}} heating
        ~heat for {{seat}}( please|)
        (turn|switch) on the {heat}
        ~my (back|bottom|butt) is cold
        ~(my|the) seat is like ice
    """
    stop = f"""
        (stop|quit) (heating|warming) {{seat}}
        ~no {heat} (for|on) {{seat}}
        ~{{seat}} is (too hot|too warm)
        ~don't (heat|warm) {{seat}}( anymore|)
        ~no more (heating|heat) (for|on) {{seat}}
        ~{{seat}} should not be heated
        ~{{seat}} is getting (hot|too hot)
        ~{{seat}} is burning( me|)
        ~{{seat}} (feels|is) hot enough
        turn {{seat}} heating off
        turn off {{seat}} heating
        ~{{seat}} heating off( please|)
        ~enough heat (for|on) {{seat}}
        let {{seat}} cool (down|off)
        cool {{seat}}( down|)
        ~{{seat}} doesn't need (heat|heating)( anymore|)
        ~no heat (for|on) {{seat}}( anymore|)
        ~{{seat}} is warm enough( now|)
        deactivate {{seat}} heating
        take the heat off {{seat}}
        ~would you mind not heating {{seat}}
        end the heating (of|on) {{seat}}
        ~i don't want {{seat}} (heated|warm)( anymore|)
        (turn|switch) off the {heat}
        ~(my|the) seat is (roasting|cooking) me
    """
    return [
        Rule("seat_heat", base, fit(SET, f"the {heat} {at}", "(level |){seatlevel}") + level, 1.1),
        Rule("seat_heat_on", {**base, "level": 2}, fit(ON, f"the {heat} {at}") + warm, 0.8),
        Rule("seat_heat_off", {**base, "level": 0}, fit(OFF, f"the {heat} {at}") + stop, 0.7),
    ]


_MASSAGE = """
    massage (for|in|on) {seat}
    ~(give me|i want|i need|i'd like) a massage
    massage (me|my back)
    ~my back hurts
    ~{seat} massage( on|)( please|)
    ~a massage (for|on|in) {seat}( please|)
    (start|begin) massaging
    (rub|knead) my back
    ~how about a massage
    ~a massage would be (nice|great|good)
"""
_NO_MASSAGE = """
    ~no (more |)massage (for|in|on) {seat}
    ~{seat} massage off
    stop massaging( me| my back|)
    ~enough massage( for {seat}|)
    ~(that's|it's) enough massage
    ~i don't want a massage( anymore|)
    ~don't massage (me|my back)( anymore|)
    ~no more massaging
    end the massage
"""


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
        ~{seat} needs to (go|move|be) @d
        ~i want to sit @d in {seat}
        ~would you mind moving {seat} @d
        ~how about {seat} @d
        nudge {seat} @d
        ~i need {seat} @d
        ~we need {seat} @d
        (run|drive|send) {seat} @d
        set {seat} (further |)@d
        ~{seat} @d( please| now|)
        ~{seat} (has|ought) to go @d
        ~let's (move|slide|bring) {seat} @d
        ~(can|could) {seat} (go|move) @d
        pull {seat} @d
        have {seat} (go|move) @d
        ~i want to move {seat} @d
        ~{seat} some more @d
        move {seat} (much|a lot) (further |)@d
        change {seat} (position |)@d
        ~{seat} must go @d
        ~i think {seat} should go @d
        ~{seat} is not far enough @d
        ~it would be nice to have {seat} @d
        ~i prefer {seat} @d
        ~{seat} a (notch|touch) @d
        ~get {seat} to (go|move) @d
        set {seat} a (bit|little) (further |)@d
        move {seat} (one|a) (notch|step) @d
        ~i don't like {seat} there move it @d
        carry {seat} @d
        let's see {seat} (go|move) @d
        ~time to move {seat} @d
        see that {seat} goes @d
    """
    return [
        *_seat_heat(),
        Rule(
            "massage_on",
            {**massage, "on": True},
            fit(ON, the) + _MASSAGE,
            0.4,
        ),
        Rule("massage_off", {**massage, "on": False}, fit(OFF, the) + _NO_MASSAGE, 0.25),
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


CABIN: list[Rule] = [*CLIMATE, *switches("device", "{dev}", {}, 2.2), *_seats()]
