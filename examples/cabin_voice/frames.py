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
"""
RUN = """
    (run|drive|operate) @x at @n
    let @x (run|go|work) at @n
    ~@x should (run|be running) at @n
    have @x (run|running) at @n
    make @x (run|go) at @n
    start @x at @n
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
"""


def fit(frames: str, x: str, n: str = "", p: str = "") -> str:
    """Put a thing, an amount and the name of a property into frames."""
    return frames.replace("@x", x).replace("@n", n).replace("@p", p)
