"""The patterns of requests that are refused."""

from __future__ import annotations

ORDER = """
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
    ~would you mind (buying|getting) {food}
    ~(i'm|we're) craving {food}
    ~i feel like {food}
    ~how about {food}
    ~let's (buy|eat|get) {food}
    ~we('d| would) like {food}
    ~do you sell {food}
    ~i ran out of {food}
    ~we('re| are) out of {food}
    ~don't forget {food}
    ~i forgot to buy {food}
    remind me to buy {food}
    ~where do they sell {food}
    ~who (has|sells) {food}
    pick up {food} (on the way|for me)
    bring {food} (home|to my house)
    add {food} to the (cart|order)
    ~the price of {food}
    ~what does {food} cost
    take {food} with you
    share {food} with me
    ~my (wife|son) wants {food}
    pass me {food}
    ~(could|can) i have {food}
"""
FACT = """
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
    ~i('m| am) curious about {fact}
    ~would you mind telling me {fact}
    ~any idea about {fact}
    ~i forgot {fact}
    ~(have you|did you) (heard|hear) {fact}
    ~who knows {fact}
    teach me {fact}
    inform me about {fact}
    ~i need to know {fact}
    ~we want to know {fact}
    ~where can i find {fact}
    give us {fact}
    tell us {fact}
    say {fact}
    describe {fact}
    ~explain to me {fact}
    ~let's (hear|talk about) {fact}
    talk (to me |)about {fact}
    ~remember {fact}
    guess {fact}
    ask the internet about {fact}
    ~(could|can) you (explain|find out) {fact}
    ~{fact}( please|)
    check {fact}
    ~how do you spell {fact}
    ~what's {number} (plus|minus|times) {number}
    add {number} and {number}
    multiply {number} by {number}
    ~(you're funny|i'm sad|i'm happy|happy birthday|merry christmas|good night|goodbye|see you later)
    ~(are you there|can you hear me|who made you|do you sleep|are you alive|are you human|what are you)
    ~(that was wrong|you made a mistake|i don't understand|say that again|talk to me|tell me something)
"""
CHORE = """
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
    ~would you mind if i {chore}
    ~i forgot to {chore}
    ~don't forget to {chore}
    ~(could|can) we {chore}
    ~we (should|need to|have to|want to) {chore}
    ~(my son|my wife|someone|nobody) (wants to|should|must|will) {chore}
    ~(i'm|we're) going to {chore}
    ~(are you|am i) able to {chore}
    start to {chore}
    teach me to {chore}
    ask someone to {chore}
    ~is it possible to {chore}
    ~do you know how to {chore}
    ~i don't want to {chore}
    ~tomorrow {chore}
    {chore} (for me|tomorrow|tonight|twice)
    ~did you {chore}
    ~i wish you could {chore}
    ~the robot should {chore}
    let me {chore}
"""
BOOK = """
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
    ~would you mind booking {book}
    ~how about {book}
    ~i('d| would) like to (book|reserve|rent) {book}
    ~let's (book|reserve|get) {book}
    ~we('d| would) like {book}
    ~i('m| am) looking for {book}
    (look for|search for) {book}
    ~{book}( please|)
    ~(can|could) we (get|have|book) {book}
    change my booking of {book}
    ask for {book}
    ~do they have {book}
    schedule {book}
    set up {book}
    ~my wife wants {book}
    confirm {book}
    rent {book}
    ~where can i (get|find) {book}
"""
MESSAGE = """
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
    ~would you mind (sending|writing) {message}
    ~i have to (send|write|answer) {message}
    ~i forgot to (send|write) {message}
    ~did you (send|get) {message}
    ~how about {message}
    ~we need (to send |){message}
    ~{message}( please|)
    show me {message}
    answer {message}
    post {message}
    share {message}
    finish {message}
    close {message}
    remove {message}
    find {message}
    compose {message}
    ~i('d| would) like {message}
    ~don't forget {message}
    turn off {message}
    ~(can|could) you (send|write|read) {message}
    let me (see|hear|write) {message}
"""
DEVICE = """
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
    ~what is the {foreign} doing
    ~how (old|big|heavy|hot) is the {foreign}
    ~who (broke|built|owns) the {foreign}
    ~would you mind fixing the {foreign}
    ~the {foreign} is (broken|dirty|too loud)
    ~i need the {foreign} (fixed|cleaned|moved)
    ~we (need|want) a {foreign}
    ~do we have a {foreign}
    ~my {foreign} (is broken|doesn't work)
    (empty|fill|load) the {foreign}
    look at the {foreign}
    bring me the {foreign}
    take the {foreign} (away|home)
    (install|remove|replace) the {foreign}
    (connect|disconnect) the {foreign}
    check the {foreign}
    show me the {foreign}
    unlock the {foreign}
    (start|stop) using the {foreign}
    turn the {foreign} (around|over|upside down)
    turn the {foreign} (up|down)
    run the {foreign} for {number} minutes
    wait for the {foreign}
    go to the {foreign}
    call the {foreign}
    play with the {foreign}
"""

ODD = """
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
    ~(a|two|some|my|the|one|another|) {noun}( please| now| thanks|)
    ~(is|are) the {noun} (open|on|closed|off|hot|ready|{noun})
    (tell me|show me|say|read|explain|look up) (a|the|my|about the) {noun}
    (set|start|add|make|create) (a|the|my) {noun} (for|of|at) {number} (minutes|degrees|seconds|percent)
    ~(what|how) about (a|the|my|some) {noun}
    ~when (was|is|will be) the {noun}
    ~(i|we) (wonder about|know about|forgot|lost|found|hate|love) (the|my|a) {noun}
    ~(could|can|may) (i|we) {verb} (a|the|my|some) {noun}
    ~it's time to {verb} the {noun}
    (put|bring|take|move|carry) the {noun} (to|in|on|under|into) the {noun}
    (get|buy|order|find|book|rent|send|write|draw) (me |us |)(a|the|my|some|two) {noun}
    ~(where|who|what) (is|was) (the|my) {noun}( of the {noun}|)
    {verb} (them|him|her|us)
    {verb} (my|the) {noun} (now|today|tomorrow|later|twice|again)
"""
TALK = """
    ~(good job|well done|great work|bravo|that's great|awesome|excellent|amazing)
    ~(i'm lonely|i'm angry|i'm late|i'm lost|i'm thirsty|i'm sleepy|i'm sick|i'm in love)
    ~(what's up|how is life|how do you feel|how was your day|what's new|how's it going)
    ~(what time is it|what day is today|what year is it|is it monday|when is easter)
    ~(will it rain|is it sunny|is it snowing|do i need an umbrella|what's the forecast)
    ~(where were you born|do you have friends|what's your favorite food|do you dream|are you smart)
    ~(are we there yet|what was that noise|did you see that|look at that|watch out)
    ~(wake me up|let me sleep|let me think|leave me alone|come here|go away|come back)
    ~(who won|who lost|who is there|who are they|who was that man|who did this)
    ~(why are you so slow|why not|what for|how come|says who|since when)
    ~(yes|no|maybe|sure|never|of course|not now|forget it|nothing|whatever|i don't know|no idea|no thanks)
    ~(sorry|excuse me|pardon|welcome|cheers|congratulations|happy new year|have a nice day)
    ~(blah blah|la la la|ha ha|ouch|oops|wow|yikes|hurray|yummy|abracadabra)
    ~(i hate you|you are stupid|you are cute|marry me|be my friend|i miss you|you are the best)
    ~(sing me a lullaby|tell me a secret|make me laugh|surprise me|entertain me|cheer me up)
    ~(i like cats|dogs are great|my car is red|it is raining|the sky is blue|i have two kids)
"""
