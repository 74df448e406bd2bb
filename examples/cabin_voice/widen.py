"""Requests for the second stage of training: more ways to ask for what the device cannot do.

They are for training alone and leave the first stage and the held-out set as they are. No pattern,
verb or noun here is one of those held out in refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from .commands import Sample, is_reserved, json_line, training_samples
from .grammar import Draw, expand
from .noise import add_fillers, finish
from .refusals import REFUSAL, invented_word

VERBS = (
    "sing|paint|bury|hide|throw|sharpen|boil|fry|invite|marry|teach|sue|weigh|measure|borrow|lend|steal|rent|hire|"
    "fire|burn|break|catch|chase|climb|cover|dig up|draw|dress|empty|erase|fill in|film|glue|guess|hug|hunt|"
    "imagine|judge|kick|kiss|melt|mend|milk|name|pack|peel|plant|punish|pull|rescue|ride|rinse|roast|sail|sew|sign|"
    "smell|spell|squeeze|subscribe to|taste|thank|tickle|tow|train|type|wrap|zip|decorate|deliver|describe|download|"
    "upload|install|get|set|open|close|start|stop|turn on|move|run|make|give me|play with|show me|check"
)
NOUNS = (
    "apple|bird|blanket|book|bottle|box|bridge|broom|bus|candle|carrot|chair|cheese|church|clock|cloud|clown|cup|"
    "dinosaur|dog|dragon|drum|duck|egg|elephant|farm|fish|flag|forest|fork|frog|garden|ghost|guitar|hammer|hat|horse|"
    "island|jacket|kangaroo|king|knife|ladder|lake|lemon|lion|mirror|monkey|moon|mountain|mouse|movie|needle|onion|"
    "owl|painting|pencil|penguin|picture|pillow|planet|potato|puzzle|queen|rabbit|rice|ring|river|sand|scissors|"
    "secret|shark|ship|snake|sofa|spider|spoon|star|statue|stone|sugar|tiger|tomato|towel|tree|umbrella|whale|wolf|"
    "newspaper|homework|insurance|invoice|passport|salary|tax form|contract|website|password|video|photo|camera bag"
)
PATTERNS = (
    "{verb} (the|a|my|some|this|that|our|) {noun}",
    "{verb} (the|a|my|some) {noun} (for|to|with|in|on|under|at) (the|a|my) {noun}",
    "{verb} (me |us |)(a|some) {noun} (for|of|with) {noun}",
    "{verb} (the|my) {noun} (on|off|up|down|out|again|together|to {number}|to {number} percent|at {number})",
    "~(what|where|when|why|how|who) (is|are|was|were|does|did) (the|a|my|) {noun}",
    "~how (many|long|big|far) (is|are|was) (the|a|my|) {noun}( and {noun}|)",
    "~(is|are|does|did|should|may) (the|a|my) {noun} {verb}( {noun}|)",
    "~(i|we|you|they) (want|need|have|like|see|know) (the|a|to {verb} the|some|to {verb}) {noun}",
    "~(who|what) (wants to|can|could|must|should) {verb} (the|my|some) {noun}",
    "~(the|my) {noun}( {noun}| is {noun}|)",
    "(help me|remember|begin|continue|forget|plan) to {verb} (the|a|my|some) {noun}",
    "~what (is|comes to) {number} (and|minus|over|to the power of) {number}",
)


def _word(known: str, share: float, rng: Random) -> str:
    return invented_word(rng) if rng.random() < share else rng.choice(known.split("|"))


def odd_request(rng: Random) -> Sample:
    """Make up a request that makes no sense to the device; a third of its words are invented."""
    pattern = rng.choice(PATTERNS)
    text = expand(pattern.removeprefix("~"), rng)
    while "{" in text:
        text = text.replace("{verb}", _word(VERBS, 0.3, rng), 1)
        text = text.replace("{noun}", _word(NOUNS, 0.35, rng), 1)
        text = text.replace("{number}", str(rng.randint(1, 99)), 1)
    text = add_fillers(text, not pattern.startswith("~"), Draw(rng, held=False))
    return Sample(finish(text, rng), json_line(REFUSAL), "refusals", ("odd_request",))


def widened_samples(seed: int, share: float = 0.25) -> Iterator[Sample]:
    """Yield training samples of which a share are odd requests."""
    rng = Random(seed)
    ordinary = training_samples(seed)
    while True:
        sample = odd_request(rng) if rng.random() < share else next(ordinary)
        if not is_reserved(sample.prompt):
            yield sample
