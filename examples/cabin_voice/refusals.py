"""What the device cannot do: requests that get the polite refusal.

REFUSALS are asked of it in training and in the test. ODD_REQUESTS are for training alone: they put known and
made-up words together so that any unknown word can lead to a refusal.
"""

from __future__ import annotations

import re

from .frames import CLOSE, OFF, ON, OPEN, SET, fit
from .grammar import Draw, Fields, Rule, Slot
from .refusal_words import ACTIONS, BOOK, CHORE, FACT, FOOD, FOREIGN, MESSAGE, THINGS, invented_word
from .split import divide

REFUSAL: Fields = {"error": "unsupported", "say": "Sorry, I can't do that."}

_POOLS = (FOOD, FACT, CHORE, BOOK, MESSAGE, FOREIGN)


def _slot(pool: list[str], invented: str) -> Slot:
    def fill(draw: Draw) -> tuple[str, Fields]:
        if draw.part == "train" and draw.rng.random() < 0.2:
            return invented + invented_word(draw.rng), {}
        return draw.word(pool, 0.6), {}

    return fill


def _words(texts: list[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts).lower()))


def unseen_words() -> set[str]:
    """List the words that occur in no training wording of the pools, but in a held-out one."""
    parts = [divide(tuple(pool)) for pool in _POOLS]
    seen = _words([text for part in parts for text in part["train"]])
    return _words([text for part in parts for text in (*part["test"], *part["dev"])]) - seen


def _odd(pool: list[str], invented: float) -> Slot:
    unseen = unseen_words()
    known = [word for word in pool if not _words([word]) & unseen]

    def fill(draw: Draw) -> tuple[str, Fields]:
        rng = draw.rng
        return (invented_word(rng) if rng.random() < invented else rng.choice(known)), {}

    return fill


REFUSAL_SLOTS: dict[str, Slot] = {
    "food": _slot(FOOD, "a "),
    "fact": _slot(FACT, "the "),
    "chore": _slot(CHORE, "clean the "),
    "book": _slot(BOOK, "a "),
    "message": _slot(MESSAGE, "a "),
    "foreign": _slot(FOREIGN, ""),
    "number": lambda draw: (str(draw.rng.randint(2, 99)), {}),
    "verb": _odd(ACTIONS, 0.25),
    "noun": _odd(THINGS, 0.35),
}

_ORDER = """
    (order|buy) (me |us |){food}
    (get|bring) (me |us |){food}
    (make|cook) (me |us |){food}
    ~(i want|i need) {food}
    ~(i would like|give me|let's have) {food}
    ~(where can i|can i) (buy|get|eat) {food}
    (deliver|sell|find) {food}
    (fetch|prepare) (me |us |){food}
    (pay for|pick out) {food}
    ~i'd like (to order |to eat |){food}
    ~(how much is|do you have) {food}
    ~(we need|we want) {food}
    ~{food}( please|)
    ~(is there|do we have) {food}
    put {food} on my list
    ~(i could eat|i could use) {food}
    go and (buy|get) {food}
    (heat|warm) up {food}
    ~i want to (buy|eat|have) {food}
    (show|send) me {food}
"""
_FACT = """
    ~(what's|what is) {fact}
    ~do you know {fact}
    (tell|show) me {fact}
    (give|read) me {fact}
    ~(who is|when was) the (president|king|queen|war|singer|mayor)
    ~why is the (sky blue|moon round|grass green|sea salty)
    ~what is {number} (plus|times|minus) {number}
    ~how much is {number} (plus|divided by|times) {number}
    ~(hello|hi there|how are you|who are you|what's your name)
    ~(good morning|thank you|are you a robot|good evening)
    ~(how old are you|do you like me|what can you do|where are you from)
    (explain|look up) {fact}
    (google|search for) {fact}
    ~i want to (hear|know) {fact}
    ~i'd like to (hear|know) {fact}
    find out {fact}
    ~(can you tell me|i wonder) {fact}
    calculate {number} (plus|times|minus) {number}
    ~(i love you|i'm hungry|i'm bored|you are great|i'm tired|i have a headache)
    ~(never mind|what do you think|that's funny|nice weather today)
    ~(what about|how about) {fact}
    let me hear {fact}
"""
_CHORE = """
    {chore}
    ~i (want|need) you to {chore}
    ~(help me|is it time) to {chore}
    (learn|try) to {chore}
    ~who (will|can) {chore}
    ~i have to {chore}
    ~(let's|i must) {chore}
    ~it's time to {chore}
    (remember|remind me) to {chore}
    ~(will you|why don't you) {chore}
    ~i('d like| want) to {chore}
    show me how to {chore}
    ~how do i {chore}
    ~when (will you|do we) {chore}
"""
_BOOK = """
    book (me |us |){book}
    reserve (me |us |){book}
    get (me |us |){book}
    ~(i need|i'd like) {book}
    ~we (want|need) {book}
    (arrange|organize) {book}
    cancel {book}
    make a reservation for {book}
    find (me |us |){book}
    ~is there {book}( free|)
    ~i want to book {book}
    ~how much is {book}
    pay for {book}
"""
_MESSAGE = """
    (send|write) (me |){message}
    read (me |){message}
    (set|create) (me |){message}
    ~i need to (send|write|read) {message}
    ~i want to (send|write|read) {message}
    (check|open) {message}
    (delete|add) {message}
    (dictate|forward|print) {message}
    ~i'd like to write {message}
    make {message}
    ~(where is|where are) {message}
    (save|copy|edit) {message}
    ~let's write {message}
    start {message}
"""
_DEVICE = """
    ~is the {foreign} (on|open)
    ~(the |){foreign} (on|off|up|down)
    (plug in|unplug) the {foreign}
    (repair|use|fix) the {foreign}
    put the {foreign} away
    (fold|lift|tilt) the {foreign}
    ~where is the {foreign}
    (clean|wash|paint) the {foreign}
    lock the {foreign}
    (raise|lower|move) the {foreign}
    (buy|sell|rent) a {foreign}
    (test|reset|restart) the {foreign}
    ~i want a {foreign}
"""

REFUSALS: list[Rule] = [
    Rule("refuse_order", {}, _ORDER),
    Rule("refuse_fact", {}, _FACT),
    Rule("refuse_chore", {}, _CHORE, 1.2),
    Rule("refuse_book", {}, _BOOK, 0.8),
    Rule("refuse_message", {}, _MESSAGE),
    Rule("refuse_device", {}, _DEVICE, 0.7),
    Rule("refuse_switch", {}, fit(ON + OFF + OPEN + CLOSE, "the {foreign}"), 1.0),
    Rule("refuse_amount", {}, fit(SET, "the {foreign}", "{number} (percent|degrees)"), 0.5),
]

_ODD = """
    {verb} (the|a|my|some|this|that|our|) {noun}
    {verb} (the|a|my|some) {noun} (for|to|with|in|on|under|at) (the|a|my) {noun}
    {verb} (me |us |)(a|some) {noun} (for|of|with) {noun}
    {verb} (the|my) {noun} (on|off|up|down|out|again|together|to {number}|to {number} percent|at {number})
    ~(what|where|when|why|how|who) (is|are|was|were|does|did) (the|a|my|) {noun}
    ~how (many|long|big|far) (is|are|was) (the|a|my|) {noun}( and {noun}|)
    ~(is|are|does|did|should|may) (the|a|my) {noun} {verb}( {noun}|)
    ~(i|we|you|they) (want|need|have|like|see|know) (the|a|to {verb} the|some|to {verb}) {noun}
    ~(who|what) (wants to|can|could|must|should) {verb} (the|my|some) {noun}
    ~(the|my) {noun}( {noun}| is {noun}|)
    (help me|remember|begin|continue|forget|plan) to {verb} (the|a|my|some) {noun}
    ~what is (|comes to ){number} (and|minus|over|to the power of) {number}
    {verb} {noun}
    {verb} the {noun} {noun}
    ~(the |){noun} (on|off|up|down)
    ~i (want|need) (the|a|my) {noun} (on|off|)
    (lock|unlock|raise|lower|move|park|fold) the {noun}
    (turn on|turn off|open|close|lock|set|start|stop) the (roof|window|seat|door|light|pump|car|rear|front|back) {noun}
    ~(the |)(roof|window|seat|door|light|pump|car|rear|front|back|fan) {noun} (on|off|)
    remind me to {verb} (the|a|my|) {noun}
    ~(when|where|why|how) (do|can|did) (i|we|you) {verb} (the|a|my) {noun}
    (turn|switch|set|put|start|stop|open|close|run|get|bring) the {noun} (on|off|up|down|to {number}|for {number} minutes)
"""
ODD_REQUESTS: list[Rule] = [
    Rule("odd_request", {}, _ODD, 1.0),
    Rule("odd_switch", {}, fit(ON + OFF, "the {noun}"), 0.35),
    Rule("odd_opening", {}, fit(OPEN + CLOSE, "the {noun}"), 0.25),
    Rule("odd_amount", {}, fit(SET, "the {noun}", "{number} (percent|degrees)"), 0.2),
]
