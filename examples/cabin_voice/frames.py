"""Ways to say a thing that fit many meanings: switching, setting an amount, opening, running for a time.

`@x` is the thing and `@n` the amount or the time; see grammar.py for the rest of the notation.
"""

from __future__ import annotations

ON = """
    (turn|switch) on @x
    (turn|switch) @x on
    (put|get) @x on
    (activate|enable) @x
    start @x( up|)
    ~@x on
    ~i (need|want) @x on
    ~i('d| would) like @x (on|running)
    ~let's have @x on
    get @x (going|running|started)
    (power|fire) up @x
    power @x up
    ~@x should be (on|running)
    ~(can we have|could i have) @x on
    set @x going
    ~(is it possible|it's time) to turn on @x
    make sure @x is on
    have @x (on|running)
    ~we (need|want) @x (on|running)
    ~time to (start|switch on) @x
    bring @x on
    go ahead with @x
    get @x to come on
    ~i could use @x( right now|)
    ~it would be (nice|good|great) to have @x on
    ~how about (some|turning on) @x
    ~what about switching @x on
    ~why isn't @x on
    ~@x( please|)
    ~why is @x still off
    ~@x isn't on yet
    leave @x on
    keep @x (on|running)
    let @x (run|work)
    ~we('d| would) like @x (on|running)
    ~it's time for @x
    ~would you mind turning on @x
    ~i was hoping for @x
    ~don't leave @x off
    ~don't forget to (turn|switch) on @x
    see that @x is (on|running)
    ~i think we need @x( now|)
    ~@x has to be (on|running)
    ~@x needs to (come|be) on
    ~(is|can) @x be turned on
    use @x
    begin with @x
    turn @x back on
    switch @x on again
    ~i want @x back on
    flip @x on
    ~(someone|somebody) turned @x off
    ~who (turned|switched) @x off
    ~i don't want @x off
    ~@x (shouldn't|should not) be off
    ~don't keep @x off
    ~@x is still off
    ~@x is off and i need it
"""
OFF = """
    (turn|switch|shut) off @x
    (turn|switch) @x off
    (shut|put|get) @x off
    (deactivate|disable) @x
    (stop|halt) @x
    shut @x down
    shut down @x
    ~@x off
    ~i (don't need|don't want) @x( anymore|)
    ~i don't (need|want) @x on( anymore|)
    ~i('d like| want) @x off
    (bring|get) @x to a (stop|halt)
    ~@x should be off
    power down @x
    power @x down
    make sure @x is off
    ~(can we have|could i have) @x off
    ~time to (stop|turn off|switch off) @x
    ~we don't need @x( anymore| now|)
    kill @x
    have @x off
    ~let's have @x off
    ~(i'm|we're) done with @x
    leave @x off
    keep @x off
    ~i('ve| have) had enough of @x
    ~that's enough of @x
    ~it would be (nice|good|great) to have @x off
    ~what about switching @x off
    ~how about turning off @x
    ~why is @x still (on|running)
    ~@x is still (on|running)
    ~there's no need for @x( anymore| now|)
    ~we('d| would) like @x off
    ~would you mind turning off @x
    ~don't leave @x on
    ~don't forget to (turn|switch) off @x
    see that @x is off
    ~i think we don't need @x( now|)
    ~@x has to (be off|stop)
    ~@x needs to (go off|stop|be off)
    ~can @x be turned off
    cut @x
    end @x
    quit @x
    turn @x back off
    switch @x off again
    ~i can do without @x
    flip @x off
    ~@x must (stop|be off)
    let @x rest
    ~@x can (stop|go off|be off)( now|)
    ~(someone|i) left @x on
    ~who (turned|switched) @x on
    ~@x was left on
    ~i don't want @x (on|running)
    ~@x (shouldn't|should not) (be on|run)
    ~don't (keep|have) @x (on|running)
    ~@x is on for no reason
"""
SET = """
    (set|put|bring) @x to @n
    (set|put) @x at @n
    (change|adjust) @x to @n
    (take|get|move) @x to @n
    (keep|hold|leave) @x at @n
    ~@x (to|at) @n
    ~i (want|need) @x at @n
    ~i('d| would) like @x (at|to be at) @n
    ~let's have @x at @n
    ~@x should be at @n
    ~@x should go to @n
    ~(can we have|could we get) @x at @n
    have @x at @n
    ~(give me|i want|i need) @n on @x
    ~@n (on|for) @x
    ~we (need|want) @x at @n
    dial @x to @n
    ~@x has to be at @n
    go to @n (on|with) @x
    turn @x to @n
    make it @n (on|for) @x
    ~for @x (i want |we need |)@n
    switch @x to @n
    make sure @x is at @n
    ~would you mind setting @x to @n
    ~how about @n (on|for) @x
    ~what about @x at @n
    ~i think @x should be @n
    ~@x needs to be (at|on) @n
    ~@x must be (at|on) @n
    see that @x is at @n
    get @x up to @n
    bring @x down to @n
    ~don't let @x go (over|above|below) @n
    try @n (on|for) @x
    ~it would be (nice|good) to have @x at @n
    ~we('d| would) like @x (at|to be at) @n
    ~(is it possible|i was hoping) to have @x at @n
    use @n for @x
    ~i prefer @x at @n
    run @x at @n
    fix @x at @n
    let @x (be|stay|go) at @n
    ~@n is (right|good|enough) for @x
    ~(can|could) @x be set to @n
    ~@n would be (nice|good|great) (on|for) @x
    ~@x equals @n
    ~my choice for @x is @n
    make @x @n
    ~time to (set|put) @x to @n
"""
RUN = """
    (run|drive|operate) @x at @n
    let @x (run|go|work) at @n
    ~@x should (run|be running) at @n
    have @x (run|running) at @n
    make @x (run|go) at @n
    start @x at @n
    ~@x (running|going) at @n
    ~i want @x to (run|work|go) at @n
    ~i('d| would) like @x to (run|go) at @n
    ~we need @x (running|to run) at @n
    get @x (running|going) at @n
    ~@x (needs|has) to run at @n
    keep @x running at @n
    bring @x up to @n
    ~how about running @x at @n
"""
PROPERTY = """
    (set|change) the @p of @x to @n
    (adjust|bring) the @p of @x to @n
    ~the @p of @x should be @n
    ~i (want|need) the @p of @x at @n
    ~i('d like| want) a @p of @n on @x
    (run|set) @x (with|to) a @p of @n
    (keep|put) the @p of @x at @n
    ~@p of @x (to|at) @n
    ~i('d| would) like the @p of @x at @n
    ~the @p of @x (has|needs) to be @n
    (get|move|take) the @p of @x to @n
    (hold|leave|fix) the @p of @x at @n
    ~@n as the @p of @x
    make the @p of @x @n
    give @x a @p of @n
    ~(how about|we need) a @p of @n (on|for) @x
    ~let's have the @p of @x at @n
    let @x have a @p of @n
    dial the @p of @x to @n
"""
TIME = """
    (run|start|turn on) @x for @n
    ~@x (on |running |)for @n
    let @x (run|go) for @n
    for @n (run|start) @x
    (switch|turn) @x on for @n
    switch on @x for @n
    keep @x (on|running|going) for @n
    ~i (want|need) @x (on|running) for @n
    have @x run for @n
    ~@n of @x
    (activate|operate) @x for @n
    ~@x should run for @n
    leave @x (on|running) for @n
    ~(i'd like|we need) @x to run for @n
    make @x run for @n
    get @x (going|running) for @n
    ~for @n i (want|need) @x (on|running)
    give @x @n
    ~@x for just @n
    let @x (work|operate) for @n
    start @x and stop (it|) after @n
    ~i('d| would) like @x on for @n
    ~we want @x (on|running) for @n
    ~how about @n of @x
    ~@x needs to run for @n
    ~let's run @x for @n
    ~for the next @n (run|keep) @x (on|)
    ~for @n @x (should run|please)
    ~@x has to (work|be on) for @n
    put @x on for @n
    (fire|power) up @x for @n
    use @x for @n
    ~run time of @n for @x
    ~(can|could) @x run for @n
    ~would you mind running @x for @n
    ~it would be (nice|good) to have @x on for @n
    ~@x (must|should) (be on|work) for @n
    run @x and stop after @n
    run @x (another|exactly|only) @n
    switch @x on and off after @n
    ~time to run @x for @n
    ~@n on @x( please|)
    ~@n with @x( on| running|)
    have @x (on|running) for @n
    start up @x for @n
    ~the run time of @x should be @n
    see that @x runs for @n
    set @x (running|going) for @n
    go @n with @x
    operate @x @n long
"""
OPEN = """
    open @x
    open @x (all the way|completely|fully)
    fully open @x
    open up @x
    open @x up
    (get|have) @x (open|opened)
    ~i (want|need) @x open
    ~i('d| would) like @x (open|opened)
    ~@x (open|fully open)
    ~let's have @x open
    ~@x should be open
    ~(can we have|could i have) @x open
    make sure @x is open
    ~we (want|need) @x open
    ~i want to open @x
    throw @x open
    (swing|pull|push) @x open
    ~i('d| would) like to open @x
    ~@x needs to (be open|open)
    ~@x has to be open
    ~let's open @x
    leave @x open
    keep @x open
    ~why is @x still (closed|shut)
    ~@x is still (closed|shut)
    ~would you mind opening @x
    ~can @x be opened
    ~how about opening @x
    ~it would be (nice|good) to have @x open
    see that @x is open
    ~don't leave @x (closed|shut)
    ~don't forget to open @x
    ~time to open @x
    open @x again
    open @x for me
    let @x (be|stand) open
    make @x open
    go ahead and open @x up
    ~i need to have @x open
    ~we have to open @x
    move @x (all the way |)open
    ~who (closed|shut) @x
    ~someone (closed|shut) @x
    ~i don't want @x (closed|shut)
    ~@x (shouldn't|should not) be (closed|shut)
    ~don't keep @x (closed|shut)
    ~@x isn't open( yet|)
    ~why isn't @x open
"""
CLOSE = """
    (close|shut) @x
    (close|shut) @x (all the way|completely|fully)
    fully close @x
    close up @x
    close @x up
    (get|have) @x (closed|shut)
    ~i (want|need) @x (closed|shut)
    ~i('d| would) like @x (closed|shut)
    ~@x (closed|shut|fully closed)
    ~let's have @x (closed|shut)
    ~@x should be (closed|shut)
    ~(can we have|could i have) @x (closed|shut)
    make sure @x is (closed|shut)
    ~we (want|need) @x closed
    ~i want to close @x
    (swing|pull|push) @x (shut|closed)
    ~i('d| would) like to close @x
    ~@x needs to (be closed|be shut|close)
    ~@x has to be (closed|shut)
    ~let's (close|shut) @x
    leave @x (closed|shut)
    keep @x (closed|shut)
    ~why is @x still open
    ~@x is still open
    ~would you mind closing @x
    ~can @x be closed
    ~how about closing @x
    ~it would be (nice|good) to have @x (closed|shut)
    see that @x is (closed|shut)
    ~don't leave @x open
    ~don't forget to (close|shut) @x
    ~time to (close|shut) @x
    (close|shut) @x again
    (close|shut) @x for me
    let @x be (closed|shut)
    make @x (closed|shut|close)
    ~i need to have @x closed
    ~we have to close @x
    move @x (all the way |)(closed|shut)
    ~i forgot to close @x
    ~someone left @x open
    ~who opened @x
    ~i left @x open
    ~@x was left open
    ~i don't want @x open
    ~@x (shouldn't|should not) be open
    ~don't keep @x open
    ~@x isn't (closed|shut)( yet|)
    ~why isn't @x (closed|shut)
"""
OPENING = """
    open @x (to |){pos} {percent}
    ~@x {pos} {percent} open
    ~i (want|need) @x (open |){pos} {percent}
    (leave|keep) @x {pos} {percent} open
    (have|get) @x open {pos} {percent}
    open up @x to {pos} {percent}
    ~i'd like @x {pos} {percent} open
    make @x {pos} {percent} open
    ~i'd like @x open at {pos} {percent}
    ~@x should be open {pos} {percent}
    ~@x open (to|at|by) {pos} {percent}
    open @x by {pos} {percent}
    get @x {pos} {percent} open
    let @x be {pos} {percent} open
    ~we (want|need) @x {pos} {percent} open
    ~how about @x {pos} {percent} open
    ~{pos} {percent} open on @x
    ~(can we have|could i have) @x {pos} {percent} open
    ~@x needs to be {pos} {percent} open
"""


def fit(frames: str, x: str, n: str = "", p: str = "") -> str:
    """Put a thing, an amount and the name of a property into frames."""
    return frames.replace("@x", x).replace("@n", n).replace("@p", p)
