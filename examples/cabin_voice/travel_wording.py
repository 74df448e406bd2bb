"""More ways to speak of navigation and calls, by the name of the rule."""

from __future__ import annotations

MORE = {
    "nav_to": """
        ~would you mind (taking|driving) (me|us) to {place}
        ~how about (going|driving) to {place}
        ~we (should|must) (go|drive|get) to {place}
        ~i('d| would) like to (go|drive|get) to {place}
        ~i('d| would) like directions to {place}
        ~we need (a route|directions|the way) to {place}
        ~i need (a route|directions|the way) to {place}
        ~i('m| am) (late|due|expected) at {place}
        ~i have an appointment at {place}
        ~(can|could) we (go|drive) to {place}
        ~what's the (fastest|shortest|best) way to {place}
        ~how do you get to {place}
        ~how can (i|we) get to {place}
        ~do you know the way to {place}
        ~i don't know the way to {place}
        ~tell me the way to {place}
        ~it's time to (go|drive) to {place}
        ~let's get to {place}
        (compute|map|find) the route to {place}
        map (a way|a route|the way) to {place}
        set (the |my |)destination to {place}
        set the navigation to {place}
        set (the |)gps (to|for) {place}
        put {place} (in|into) the (navigation|gps)
        enter {place} (in|into) the (navigation|gps)
        enter {place} as the destination
        change (the |my |)destination to {place}
        make {place} (the |my |)destination
        (point|steer|direct) (me|us) to {place}
        (turn|go) toward {place}
        ~{place} (is where i want to go|is our destination)
        ~we('re| are) (heading|on our way) to {place}
        ~i('m| am) (heading|on my way) to {place}
        ~next stop is {place}
        ~off we go to {place}
        ~destination is {place}
        ~(i|we) should be at {place}
        ~(i|we) want to be at {place}
        ~where's {place}
        ~how long (is it|does it take) to {place}
        ~how far (away |)is {place}
        guide me to {place}
        start (a |the )(trip|route|drive) to {place}
        ~a (trip|drive|ride) to {place}( please|)
        ~give us (a route|directions) to {place}
        choose {place} as (the |my )destination
        send (me|us) to {place}
        ~i was hoping to get to {place}
    """,
    "nav_cancel": """
        ~i know the way( from here| now|)
        ~i know where (i am|to go)
        ~we know the way( from here|)
        ~i('ll| will) find (the way|it) (by |)myself
        ~i don't need (any |)(help finding the way|guidance)
        ~i('ve| have) changed my mind about the route
        ~would you mind stopping the navigation
        ~let's (end|stop|cancel) the (navigation|route)
        ~we don't need (the |)(navigation|directions)( anymore|)
        ~i('d| would) like the navigation off
        ~no (navigation|directions|guidance)( please|)
        turn (the |)(route guidance|guidance|directions) off
        (stop|quit) giving (me |)directions
        (stop|quit) telling me (where to go|the way)
        stop showing (me |)the (way|route)
        end (the |my |this )(trip|route)
        ~(trip|route|navigation) (over|cancelled)
        remove the (route|destination)
        delete the (destination|trip)
        clear the (destination|map)
        reset the navigation
        get rid of the route
        disable (the |)(navigation|route guidance)
        deactivate (the |)(navigation|route guidance)
        ~the navigation should (stop|be off)
        don't (guide|navigate)( me|)( anymore|)
        kill the navigation
        abandon the (route|trip)
        close the navigation
        halt (the |)(navigation|route guidance)
        take the (route|destination) off
        ~we('re| are) there( already|)
        ~enough (navigation|directions)
        ~i want to (cancel|stop|end) the (route|navigation)
        finish (the |)(navigation|route guidance)
    """,
    "nav_home_tolls": """
        ~i('d| would) like (a route|to drive) without tolls
        ~would you mind avoiding (tolls|toll roads)
        ~we('d| would) like to avoid (tolls|toll roads)
        ~let's avoid (tolls|toll roads)
        ~let's not (pay|use) (tolls|toll roads)
        ~i (hate|can't afford) (tolls|toll roads)
        ~toll roads are too expensive
        ~i don't have money for (tolls|toll roads)
        ~(tolls|toll roads) should be avoided
        ~how about a route without tolls
        ~is there a (way|route) without tolls
        ~no tolls on the (way|route)( please|)
        ~no paying of tolls
        don't (take|use) (any |)toll roads
        don't (send|take) me (on|over) toll roads
        don't route me (over|through) toll roads
        keep away from toll roads
        stay away from (tolls|toll roads)
        steer clear of (tolls|toll roads)
        navigate (around|without) (the |)tolls
        go around the toll roads
        plan the route without (tolls|toll roads)
        choose (roads|a route) without tolls
        pick a (toll free|free) route
        ~a toll free (way|route)( please|)
        ~toll free( route| roads|)( please|)
        make the route toll free
        use (only |)(free roads|toll free roads)
        drive on free roads( only|)
        only (free|toll free) roads
        remove toll roads from the route
        ignore toll roads
        bypass (the |)(tolls|toll roads)
        ~i want (a route without tolls|no tolls)
        turn off toll roads
        set the route to avoid tolls
    """,
    "call": """
        ~would you mind calling {contact}
        ~i (should|must) (call|phone|ring) {contact}
        ~it's time to call {contact}
        ~i was going to (call|phone) {contact}
        ~i promised to (call|phone) {contact}
        ~(can|could) we (call|phone|ring) {contact}
        ~(can|could) you get {contact} on the (phone|line)
        ~we (should|need to|have to) (call|phone) {contact}
        ~we('d| would) like to (call|phone|talk to) {contact}
        ~how about (calling|a call to) {contact}
        ~i want to have a word with {contact}
        ~i need a word with {contact}
        ~i (need|want) {contact} on the (line|phone)
        ~i('d| would) like to have {contact} on the (line|phone)
        ~let me (call|phone|ring) {contact}
        ~let's (talk|speak) to {contact}
        ~let's give {contact} a (call|ring)
        ~don't forget to call {contact}
        ~i forgot to call {contact}
        ~{contact} (wants|asked) me to call
        ~is {contact} reachable
        make a (phone call|call) to {contact}
        make the phone ring at {contact}
        start calling {contact}
        start a phone call with {contact}
        begin a call (to|with) {contact}
        set up a call (to|with) {contact}
        open a line to {contact}
        use the phone to call {contact}
        dial {contact}( please| up|)
        dial the phone number of {contact}
        dial {contact}'s number
        call {contact}( on the phone| on the mobile|)
        call {contact}'s (number|phone)
        call the number of {contact}
        phone {contact} (up|now)
        ring {contact} up
        give a (call|ring) to {contact}
        get in touch with {contact}
        get through to {contact}
        get hold of {contact}
        get a call through to {contact}
        contact {contact}
        reach out to {contact}
        connect (me |us )to {contact}
        put (me|us) on the phone with {contact}
        put {contact} on the (line|phone)
        ~a phone call to {contact}( please|)
        ~{contact} on the (phone|line)( please|)
        try {contact}'s (number|phone)
        try calling {contact}
    """,
    "call_end": """
        ~would you mind hanging up
        ~i (want|need|have) to hang up
        ~i('d| would) like to (hang up|end the call)
        ~let's (hang up|end the call|end this call)
        ~we('re| are) done with (the|this) call
        ~i('m| am) done talking
        ~we('re| are) done talking
        ~i don't want to talk (anymore|any longer)
        ~the call is (over|done|finished)
        ~this call is (over|done|finished)
        ~this call should end
        ~bye bye hang up
        ~goodbye end the call
        ~that's all hang up
        ~it's time to hang up
        ~no more (call|phone call)
        ~enough talking hang up
        leave (the|this) (call|phone call)
        quit (the|this) (call|phone call)
        exit the call
        hang the phone up
        hang up (this|on this person|on them)
        stop talking to this person
        stop the phone
        break off (the|this) call
        drop the (call|caller|line)
        cut (the line|them off|off the call)
        close the line
        disconnect (the line|the caller|us|me)( now|)
        shut the call down
        shut down the call
        kill the call
        conclude the call
        finish the (conversation|phone call)
        end the (conversation|talk|line)
        end my call
        bring the call to an end
        press the red button on the phone
        ~call (ended|finished|done)( please|)
    """,
    "call_answer": """
        ~would you mind (answering|taking) the call
        ~i('d| would) like to (take|answer) (the|this) call
        ~i have to (take|answer) (the|this) call
        ~i need to (take|answer) (the|this) call
        ~i('ll| will) (answer|get) (it|that)
        ~let's (answer|take) (the|this) call
        ~let me (answer|take) (the|this) call
        ~we should (answer|take) (the|this) call
        ~the phone is ringing( answer it| pick up|)
        ~my phone is ringing( answer it| pick up|)
        ~that's the phone answer it
        ~who is calling put them through
        ~yes i('ll| will) take (it|the call)
        ~there's a call answer it
        ~that call is important take it
        ~don't let it ring pick up
        ~someone is (calling|on the phone) answer
        answer (the (caller|line)|my phone|my call)
        answer the (ringing phone|incoming phone call)
        answer whoever is calling
        accept (it|the caller|my call)
        take (it|the phone|my call)
        respond to the call
        react to the call
        receive the (incoming|new) call
        pick up (my phone|for me)
        pick up the (ringing phone|incoming call)
        get (that|the|this) call
        open the (incoming|new) call
        put (them|him|her) through
        connect the (incoming|new) call
        connect (the caller|me with the caller)
        ~call accepted
        say hello to the caller
        let them through
        press the green button on the phone
        start the (incoming|new) call
    """,
}
