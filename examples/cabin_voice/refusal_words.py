"""The words of requests that the device cannot fulfil: pools to be divided, and words made up."""

from __future__ import annotations

from random import Random

from .refusal_things import (
    MORE_ACTIONS,
    MORE_BOOK,
    MORE_CHORE,
    MORE_FACT,
    MORE_FOOD,
    MORE_FOREIGN,
    MORE_MESSAGE,
    MORE_THINGS,
)

FOOD = (
    "a pizza|two pizzas|a burger|some milk|a cup of coffee|a coffee|a sandwich|ice cream|lunch|breakfast|dinner|"
    "a bottle of water|some bread|a salad|flowers|a new phone|shoes|a ticket|groceries|a beer|noodles|tea|"
    "a taco|some sushi|a hot dog|a cake|a glass of juice|a new laptop|a birthday present|socks|fresh fruit|soup|"
    "some cheese|a steak|chocolate|a dozen eggs|french fries|a milkshake|a new jacket|two apples|cat food|batteries|"
    "a bag of rice|some cookies|a donut|a bike|a watch|a cold drink|a lottery ticket|sunglasses|a bunch of roses"
).split("|") + MORE_FOOD
FACT = (
    "the capital of France|the weather tomorrow|the meaning of life|the latest news|a joke|a story|a riddle|"
    "the score of the game|the population of China|the price of gold|who won the election|how to bake bread|"
    "the time in Tokyo|a fun fact|my horoscope|the square root of nine|what day it is|the name of this song|"
    "the height of Mount Everest|a bedtime story|the stock prices|who invented the telephone|how to tie a knot|"
    "the distance to the moon|a poem|the football results|the weather in Spain|my calendar|the date|the lottery numbers|"
    "the forecast for the weekend|the exchange rate|how old the president is|a recipe for soup|the rules of chess|"
    "the longest river|a tongue twister|what the stars say|the cinema program|the opening hours|my bank balance|"
    "who wrote Hamlet|the boiling point of water|how many people live in Rome|a good book|the best restaurant|"
    "the calories in a banana|the winner of the race|the speed of light|what love is"
).split("|") + MORE_FACT
CHORE = (
    "wash the dishes|feed the dog|walk the dog|mow the lawn|clean my room|fold the laundry|iron my shirt|"
    "paint the wall|fix the roof of my house|do my homework|take out the trash|make the bed|cut my hair|"
    "park the bike|brush my teeth|build a house|sing a song|dance for me|take a picture|sweep the floor|"
    "write an essay|solve this equation|change the oil|change the tires|charge my phone|drive by yourself|"
    "water the plants|feed the cat|bake a cake|vacuum the carpet|rake the leaves|write a poem|translate this letter|"
    "repair my bicycle|tie my shoes|knit a sweater|shovel the snow|count the sheep|polish my shoes|learn French|"
    "park the car|fold the mirrors|honk the horn|start the engine|change lanes|overtake that truck|weld the frame|"
    "cut the plate|drill a hole|sand the board|sort the screws|paint the part|pack the boxes|load the truck|"
    "inflate the tires|pay the toll|pay my bills|transfer money|scan this document|translate this word|play chess|"
    "tell the truth|go to sleep|wake me up at six|find my keys|hold my hand|read my mind|lift the car|fly to the moon|"
    "turn left at the light|take the next exit|reset the trip meter|measure my heart rate|guess my age|grind the coffee|"
    "sharpen the knife|assemble the shelf|inspect the weld|empty the bin|wipe the table|hang up the coat|buy a stamp"
).split("|") + MORE_CHORE
BOOK = (
    "a table for two|a hotel room|a flight|a flight to Madrid|a taxi|a room|tickets for the concert|a table at eight|"
    "a seat on the train|an appointment|a haircut|a rental car|a table for four|a train ticket|a cruise|"
    "a doctor's appointment|a holiday|a hostel|a tennis court|a parking space|a babysitter|a bus ticket|two cinema tickets|"
    "a campsite|a meeting room|a guided tour|a car wash|a ferry|a dentist appointment|a massage therapist"
).split("|") + MORE_BOOK
MESSAGE = (
    "an email to Anna|a text to Bob|a message to my boss|my emails|a letter to mom|a reminder|an alarm for seven|"
    "a note|my messages|a shopping list|a meeting at noon|a tweet|a fax to the office|a text message to Emma|"
    "an email to my sister|a postcard|a to do list|a calendar entry|my diary|a timer|a timer for ten minutes|"
    "a voice memo|my notes|a birthday card|my inbox|an invitation|a comment|a letter to the bank|a blog post|"
    "a reply to Carlos|my contacts|a photo to Nina"
).split("|") + MORE_MESSAGE
FOREIGN = (
    "fridge|dishwasher|garage|garage door|tv|television|washing machine|lawn mower|front gate|kettle|toaster|"
    "computer|printer|elevator|microwave|kitchen light|bathroom fan|garden hose|sprinkler|curtain|blinds|bank account|"
    "swimming pool|rocket|coffee machine|laptop|doorbell|fireplace|engine of the boat|piano|drone|freezer|"
    "stereo in the kitchen|hair dryer|sauna|tablet|crane|submarine|bedroom lamp|fountain|helicopter|dryer|forklift|"
    "laser|drill|saw|lathe|welder|compressor|engine|horn|side mirrors|mirrors|handbrake|turn signal|siren|trailer|"
    "alarm system|robot vacuum|water tap|shower|street lamp|traffic light|washing line|projector|scanner|router|"
    "electric blanket|bread maker|grill|stove|hairbrush|ladder|tractor|bus|tram|generator|solar panel|thermostat at home|"
    "front porch lamp|awning|hot tub|treadmill|typewriter|escalator|ski lift|clock|telescope|record player|game console|"
    "parachute|anchor|sail|cash register|vending machine|hay baler|snow blower|roof rack|air bag|seat belt|spoiler"
).split("|") + MORE_FOREIGN
ACTIONS = (
    "sing|paint|bury|hide|throw|sharpen|boil|fry|invite|marry|teach|sue|weigh|measure|borrow|lend|steal|rent|hire|"
    "fire|burn|break|catch|chase|climb|cover|dig up|draw|dress|empty|erase|fill in|film|glue|guess|hug|hunt|"
    "imagine|judge|kick|kiss|melt|mend|milk|name|pack|peel|plant|punish|pull|rescue|ride|rinse|roast|sail|sew|sign|"
    "smell|spell|squeeze|subscribe to|taste|thank|tickle|tow|train|type|wrap|zip|decorate|deliver|describe|download|"
    "upload|install|get|set|open|close|start|stop|turn on|move|run|make|give me|play with|show me|check|"
    "adopt|admire|arrest|attach|bend|bite|bless|blow up|bounce|brush|build|bury|carve|celebrate|collect|compare|compose|"
    "copy|crush|curl|deny|destroy|donate|drag|drown|dust|explore|export|feed|fold|forgive|freeze dry|grill|grow|hand over|"
    "harvest|hatch|insult|invent|inspect|juggle|knit|launch|lick|lift|mow|nail|obey|order|pat|pinch|plow|praise|publish|"
    "rake|record|recycle|remove|rewrite|rob|scare|scratch|shake|shave|slice|stack|stretch|swallow|swap|tear|tease|unfold|"
    "unpack|vote for|wake|water|weave|weed|whisper to|wind up a|worship|yell at|lock|unlock|raise|lower|switch off"
).split("|") + MORE_ACTIONS
THINGS = (
    "apple|bird|blanket|book|bottle|box|bridge|broom|bus|candle|carrot|chair|cheese|church|clock|cloud|clown|cup|"
    "dinosaur|dog|dragon|drum|duck|egg|elephant|farm|fish|flag|forest|fork|frog|garden|ghost|guitar|hammer|hat|horse|"
    "island|jacket|kangaroo|king|knife|ladder|lake|lemon|lion|mirror|monkey|moon|mountain|mouse|movie|needle|onion|"
    "owl|painting|pencil|penguin|picture|pillow|planet|potato|puzzle|queen|rabbit|rice|ring|river|sand|scissors|"
    "secret|shark|ship|snake|sofa|spider|spoon|star|statue|stone|sugar|tiger|tomato|towel|tree|umbrella|whale|wolf|"
    "newspaper|homework|insurance|invoice|passport|salary|tax form|contract|website|password|video|photo|bag|"
    "violin|factory|airplane|doll|coin|bucket|curtain rod|feather|jungle|lamp shade|magnet|nest|orchestra|parrot|quilt|"
    "rope|saddle|tent|vase|wallet|yacht|zebra|engine block|bolt|nail|wrench|plank|brick|cable|screwdriver|barrel|"
    "acorn|actor|album|alley|ant|apron|arrow|ash tray|axe|baby|badge|bagpipe|ball|balloon|bandage|banjo|barn|basket|bat|"
    "beard|bee|bell|bench|berry|bicycle|billboard|biscuit|boomerang|bow|bracelet|brain|branch|bride|brush|bubble|bull|"
    "bunker|butter|button|cabbage|cactus|cage|calculator|camel|cannon|canoe|cap|carpet|cart|cave|cellar|cereal|chain|"
    "chalk|cherry|chicken|chimney|circus|cliff|coconut|coffin|comb|compass|cow|cradle|crown|cushion|dagger|daisy|deer|"
    "desk|diamond|dice|doctor bag|dolphin|donkey|drawer|dress|eagle|easel|emerald|envelope|eraser|fairy|fence|ferry|fiddle|"
    "flute|football|forehead|fox|funnel|galaxy|gate|giraffe|glue|goat|goose|grape|grass|hamster|hedge|hill|hook|"
    "hose|hourglass|hut|iceberg|iron|jar|jelly|jigsaw|jewel|keyboard|kite|koala|lantern|lawn|leaf|lobster|locker|log|"
    "lunch box|mailbox|map|marble|mask|mattress|medal|melon|mill|mole|mop|moose|motorboat|mug|mushroom|nut|oar|ocean|"
    "octopus|olive|orchid|ostrich|paddle|palace|pan|panda|paper|peach|peacock|pear|pen|pepper|pier|pig|pigeon|pirate|"
    "plate|plow|pond|pony|poster|pot|prison|pumpkin|puppet|purse|raft|railway|rainbow|rat|razor|robin|rug|ruler|sack|"
    "safe|salt|scarf|school bag|sculpture|seal|seashell|shed|sheep|shelf|shield|shirt|shovel|sink|skate|skeleton|sled|"
    "snail|soap|sponge|squirrel|staircase|stamp|stick|stool|straw|string|suitcase|sunflower|swan|sweater|sword|table|"
    "tank|tape|tower|toy|trombone|trumpet|tuba|tulip|tunnel|turtle|tv set|unicorn|vest|village|volcano|wagon|walnut|"
    "wand|waterfall|web|wheelbarrow|whistle|wig|windmill|wire|wizard|worm|xylophone|yarn|zeppelin|zipper|air fryer|"
    "water pistol|chain saw|sewing machine|cash machine|snow plow|ice machine|photo album|power bank|keyhole|toolbox"
).split("|") + MORE_THINGS
_SYLLABLES = (
    "ba be bo dra du fi flo ga gri ho jo ka klu la li mo mu na no pra ri ro sa shi sto ta tru va vo wi za ze "
    "ack bli cro den ell fer gis hul ink jor kep lum mip nex orp pel quo rast sned tov ulm ven wex yil zor"
).split()


def invented_word(rng: Random) -> str:
    """Make up a noun, so that any unknown word can lead to a refusal."""
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4))) + rng.choice(["", "n", "t", "s", "r"])
