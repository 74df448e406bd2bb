"""What can be said about the navigation and calls."""

from __future__ import annotations

from .grammar import Rule


def _navigation() -> list[Rule]:
    to = """
        navigate to {place}
        (drive|go|head) to {place}
        (take|bring) (me|us) to {place}
        get (me|us) to {place}
        (start navigation|start the navigation) to {place}
        (set the destination|set a course) to {place}
        ~how do (i|we) get to {place}
        (show me|find) the way to {place}
        ~the (fastest|shortest|best) way to {place}
        ~(i|we) (want|need|have) to (go|get|drive) to {place}
        find (a route to |directions to |){place}
        (plan|calculate) (a|the) route to {place}
        show (me |)(a|the) route to {place}
        (guide|drive|lead) (me|us) to {place}
        ~let's (go|drive|head) to {place}
        ~(i'd|we'd) like to go to {place}
        give me directions to {place}
        ~(directions|route|navigation) to {place}
        ~(can you|could you) (take|get) (me|us) to {place}
        ~(where is|how far is it to) {place}
        set {place} as (the |my |)destination
        ~(destination|next stop|off to) {place}
        ~my destination is {place}
        ~to {place}( please|)
        ~(i'm|we're) (going|driving) to {place}
        route (me|us) to {place}
        ~i must (get|go) to {place}
        make (your|our) way to {place}
        ~which way (to|is) {place}
    """
    cancel = """
        (stop|cancel|end|quit) (the |)navigation
        (stop|cancel|end|quit) (the |)route guidance
        cancel the route
        (stop|end) the route
        ~no more (navigation|route guidance|directions)
        (switch|turn) off (the |)navigation
        (switch|turn) (the |)navigation off
        ~(navigation|route guidance) off
        (abort|delete|clear) the (route|navigation)
        ~i don't need (the |)(navigation|directions)( anymore|)
        (forget|drop) the (route|destination)
        (leave|exit) (the |)navigation
        stop (guiding|navigating)( me| us|)
        cancel (the |my )(trip|destination)
        shut (down |off )the navigation
    """
    tolls = """
        avoid (toll roads|tolls|the tolls)
        ~(no|without) (toll roads|tolls)
        stay off (the |)toll roads
        keep (me |us |)off (the |)toll roads
        ~i don't want (toll roads|tolls)
        ~(i|we) don't want to pay (tolls|toll)
        (skip|leave out|exclude) (the |)toll roads
        ~a route without (tolls|toll roads)
        find a (way|route) without (tolls|toll roads)
        drive around the tolls
        go without (tolls|toll roads)
        ~(don't use|no more) toll roads
        take (a|the) toll free (route|way)
        ~i'd like to avoid (tolls|toll roads)
    """
    return [
        Rule("nav_to", {"act": "nav"}, to, 1.5),
        Rule("nav_cancel", {"act": "nav", "cmd": "cancel"}, cancel, 0.5),
        Rule("nav_home_tolls", {"act": "nav", "cmd": "avoid_tolls"}, tolls, 0.4),
    ]


def _calls() -> list[Rule]:
    call = """
        (call|phone) {contact}
        (ring|dial) {contact}
        (make|start) a (call|phone call) to {contact}
        ~i (need|want) to (talk|speak) to {contact}
        ~i need to (call|phone|ring) {contact}
        give {contact} a (call|ring)
        get {contact} on the (phone|line)
        (place a call to|start a call with) {contact}
        ~i'd like to (call|phone|speak to) {contact}
        ~i have to (call|phone|speak to) {contact}
        (connect|put) me (through |)to {contact}
        put a call through to {contact}
        ~(let me|i must) (talk|speak) to {contact}
        ring up {contact}
        call up {contact}
        ~(i want|get me) {contact} on the (phone|line)
        ~(a call|phone call|call) to {contact}( please|)
        ~let's (call|phone|ring) {contact}
        ~i (want|would like) to (call|phone) {contact}
        ~can i (talk|speak) to {contact}
        reach {contact} (on|by) the phone
        have a call with {contact}
        get me {contact}
        dial the number of {contact}
        try to (reach|call) {contact}
        connect (the call |)(with|to) {contact}
    """
    end = """
        hang up( the phone| the call|)
        (end|finish|stop) (the|this) (call|phone call)
        (hang up on|drop) this call
        cut the (phone |)call
        ~(i'm|we're) done with (the|this) call
        terminate (the|this) (call|phone call)
        put the phone down
        put down the phone
        ~(call|phone call) over
        get off the phone
        disconnect (the|this) call
        close (the|this) call
        ~that's the end of the call
        ~no more talking on the phone
    """
    answer = """
        (answer|accept|take) (the|this) (call|phone call)
        (answer|get) the phone
        pick up( the phone| the call|)
        pick up (this|the) phone call
        (accept|answer) the (incoming|new) call
        take the (incoming|new) call
        pick the (phone|call) up
        ~i('ll| will) take (the|this) call
        ~i want to (take|answer) (the|this) call
        put the (call|caller) through
        let the caller (in|through)
        ~answer it
        receive (the|this) call
        ~someone is calling pick up
    """
    return [
        Rule("call", {"act": "call"}, call, 1.5),
        Rule("call_end", {"act": "call", "cmd": "end"}, end, 0.4),
        Rule("call_answer", {"act": "call", "cmd": "answer"}, answer, 0.4),
    ]


TRAVEL: list[Rule] = [*_navigation(), *_calls()]
