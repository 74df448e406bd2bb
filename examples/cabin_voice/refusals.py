"""What the device cannot do: requests that get the polite refusal. Held-out ones use other words too."""

from __future__ import annotations

from random import Random

from .grammar import Draw, Fields, Rule, Slot

REFUSAL: Fields = {"error": "unsupported", "say": "Sorry, I can't do that."}

_FOOD = (
    "a pizza|two pizzas|a burger|some milk|a cup of coffee|a coffee|a sandwich|ice cream|lunch|breakfast|dinner|"
    "a bottle of water|some bread|a salad|flowers|a new phone|shoes|a ticket|groceries|a beer|noodles|tea"
)
_FOOD_HELD = (
    "a taco|some sushi|a hot dog|a cake|a glass of juice|a new laptop|a birthday present|socks|fresh fruit|soup"
)
_FACT = (
    "the capital of France|the weather tomorrow|the meaning of life|the latest news|a joke|a story|a riddle|"
    "the score of the game|the population of China|the price of gold|who won the election|how to bake bread|"
    "the time in Tokyo|a fun fact|my horoscope|the square root of nine|what day it is|the name of this song"
)
_FACT_HELD = (
    "the height of Mount Everest|a bedtime story|the stock prices|who invented the telephone|how to tie a knot|"
    "the distance to the moon|a poem|the football results|the weather in Spain|my calendar"
)
_CHORE = (
    "wash the dishes|feed the dog|walk the dog|mow the lawn|clean my room|fold the laundry|iron my shirt|"
    "paint the wall|fix the roof of my house|do my homework|take out the trash|make the bed|cut my hair|"
    "park the bike|brush my teeth|build a house|sing a song|dance for me|take a picture|sweep the floor|"
    "write an essay|solve this equation|change the oil|change the tires|charge my phone|drive by yourself"
)
_CHORE_HELD = (
    "water the plants|feed the cat|bake a cake|vacuum the carpet|rake the leaves|write a poem|translate this letter|"
    "repair my bicycle|tie my shoes|knit a sweater|shovel the snow|count the sheep|polish my shoes|learn French"
)
_BOOK = (
    "a table for two|a hotel room|a flight|a flight to Madrid|a taxi|a room|tickets for the concert|a table at eight|"
    "a seat on the train|an appointment|a haircut|a rental car"
)
_BOOK_HELD = "a table for four|a train ticket|a cruise|a doctor's appointment|a holiday|a hostel|a tennis court"
_MESSAGE = (
    "an email to Anna|a text to Bob|a message to my boss|my emails|a letter to mom|a reminder|an alarm for seven|"
    "a note|my messages|a shopping list|a meeting at noon|a tweet|a fax to the office"
)
_MESSAGE_HELD = "a text message to Emma|an email to my sister|a postcard|a to do list|a calendar entry|my diary"
_FOREIGN = (
    "fridge|dishwasher|garage|garage door|tv|television|washing machine|lawn mower|front gate|kettle|toaster|"
    "computer|printer|elevator|microwave|kitchen light|bathroom fan|garden hose|sprinkler|curtain|blinds|bank account|"
    "swimming pool|rocket|coffee machine|laptop|doorbell|fireplace|engine of the boat|piano|drone"
)
_FOREIGN_HELD = "freezer|stereo in the kitchen|hair dryer|sauna|tablet|crane|submarine|bedroom lamp|fountain|helicopter"
_SYLLABLES = [
    "ba",
    "be",
    "bo",
    "dra",
    "du",
    "fi",
    "flo",
    "ga",
    "gri",
    "ho",
    "jo",
    "ka",
    "klu",
    "la",
    "li",
    "mo",
    "mu",
    "na",
    "no",
    "pra",
    "ri",
    "ro",
    "sa",
    "shi",
    "sto",
    "ta",
    "tru",
    "va",
    "vo",
    "wi",
    "za",
    "ze",
]


def invented_word(rng: Random) -> str:
    """Make up a noun, so that any unknown word can lead to a refusal."""
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4))) + rng.choice(["", "n", "t", "s", "r"])


def _slot(train: str, held: str, invented: str) -> Slot:
    def fill(draw: Draw) -> tuple[str, Fields]:
        rng = draw.rng
        if draw.held and rng.random() < 0.6:
            return rng.choice(held.split("|")), {}
        if not draw.held and rng.random() < 0.25:
            return invented + invented_word(rng), {}
        return rng.choice(train.split("|")), {}

    return fill


REFUSAL_SLOTS: dict[str, Slot] = {
    "food": _slot(_FOOD, _FOOD_HELD, "a "),
    "fact": _slot(_FACT, _FACT_HELD, "the "),
    "chore": _slot(_CHORE, _CHORE_HELD, "clean the "),
    "book": _slot(_BOOK, _BOOK_HELD, "a "),
    "message": _slot(_MESSAGE, _MESSAGE_HELD, "a "),
    "foreign": _slot(_FOREIGN, _FOREIGN_HELD, ""),
    "number": lambda draw: (str(draw.rng.randint(2, 99)), {}),
}

REFUSALS: list[Rule] = [
    Rule(
        "refuse_order",
        {},
        (
            "(order|buy|get|bring|make|cook) (me |us |){food}",
            "~(i want|i need|i would like|give me|let's have) {food}",
            "~(where can i|can i) (buy|get|eat) {food}",
            "(deliver|sell|find) {food}",
        ),
        (
            "(fetch|prepare|pay for) {food}",
            "~i'd like (to order |to eat |){food}",
            "~(how much is|do you have) {food}",
        ),
    ),
    Rule(
        "refuse_fact",
        {},
        (
            "~(what's|what is|do you know) {fact}",
            "(tell|show|give) me {fact}",
            "~(who is the|when was the|why is the) (president|king|sky blue|war|singer|moon round)",
            "~what is {number} (plus|times|minus) {number}",
            "~(hello|hi there|how are you|who are you|what's your name|good morning|thank you|are you a robot)",
        ),
        (
            "(explain|look up|google) {fact}",
            "~i want to (hear|know) {fact}",
            "~how much is {number} (plus|divided by) {number}",
            "~(good evening|how old are you|do you like me)",
        ),
    ),
    Rule(
        "refuse_chore",
        {},
        ("{chore}", "~i (want|need) you to {chore}", "~(help me|is it time) to {chore}"),
        ("(learn|try) to {chore}", "~who will {chore}"),
    ),
    Rule(
        "refuse_book",
        {},
        ("(book|reserve|get) (me |us |){book}", "~(i need|we want|i'd like) {book}"),
        ("(arrange|cancel) {book}", "make a reservation for {book}"),
    ),
    Rule(
        "refuse_message",
        {},
        (
            "(send|write|read|set|create) (me |){message}",
            "~i (need|want) to (send|write|read) {message}",
            "(check|delete|add) {message}",
        ),
        ("(dictate|forward|print) {message}", "~i'd like to write {message}"),
    ),
    Rule(
        "refuse_device",
        {},
        (
            "(turn on|turn off|switch on|open|close|start|stop|activate|lock) the {foreign}",
            "(turn|switch) the {foreign} (on|off)",
            "set the {foreign} to {number} (percent|degrees)",
            "~is the {foreign} (on|open)",
            "~(the |){foreign} (on|off|up|down)",
        ),
        (
            "(plug in|unplug|repair|use) the {foreign}",
            "(shut|put) the {foreign} (off|away)",
            "bring the {foreign} to {number} percent",
        ),
        1.5,
    ),
]
