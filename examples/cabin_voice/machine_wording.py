"""More ways to speak of the arm, the gripper and the whole shop, by the name of the rule."""

from __future__ import annotations

_ARM, _GRIP, _PART = "the (arm|robot arm|robot)", "the (gripper|claw|hand)", "the (part|workpiece|object|piece)"

_TEXTS = {
    "arm_move": """
        ~would you mind moving @a {mm} {armdir}
        ~we (want|need) @a {mm} (further |){armdir}
        ~i('d| would) like @a {mm} (further |){armdir}
        ~let's move @a {mm} {armdir}
        ~how about @a {mm} {armdir}
        ~@a (needs|has) to (go|move) {mm} {armdir}
        ~@a (needs|has) to move {armdir} by {mm}
        ~@a must (go|move) {armdir} by {mm}
        ~(can|could) @a (go|move) {mm} {armdir}
        ~@a {armdir} (by |){mm}
        ~@a {mm} {armdir}
        ~{armdir} {mm} (with|for) @a
        ~{mm} (to the |){armdir} for @a
        ~{mm} (further |){armdir} on @a
        (slide|nudge|jog) @a {mm} {armdir}
        (slide|nudge|jog) @a {armdir} (by |){mm}
        (send|carry|pull) @a {mm} {armdir}
        (carry|pull|bring) @a {armdir} by {mm}
        take @a {armdir} (by |){mm}
        get @a {armdir} (by |){mm}
        put @a {mm} (further |){armdir}
        set @a {mm} {armdir}
        travel {mm} {armdir} with @a
        move {armdir} by {mm} with @a
        move {mm} {armdir} with @a
        have @a move {armdir} by {mm}
        make @a move {armdir} by {mm}
        let @a move {armdir} by {mm}
        ~i want to move @a {mm} {armdir}
        run @a {mm} {armdir}
        displace @a {mm} {armdir}
        advance @a {mm} {armdir}
        position @a {mm} (further |){armdir}
        step @a {mm} {armdir}
        guide @a {mm} {armdir}
        move @a a distance of {mm} {armdir}
        move @a {armdir} a distance of {mm}
        ~@a should be {mm} further {armdir}
    """,
    "arm_home": """
        ~would you mind sending @a home
        ~we (want|need) @a (back |)home
        ~i('d| would) like @a (back |)home
        ~i need @a (back |)(home|in its home position)
        ~let's (bring|send|move) @a home
        ~how about sending @a home
        ~@a (needs|has) to go (back |)home
        ~@a must (go|return) home
        ~@a can go home( now|)
        ~(can|could) @a go home
        ~@a should (be home|return home)
        ~@a should be (at|in) (the|its) home position
        ~time for @a to go home
        ~we're done with @a send it home
        ~home position (for|with) @a
        ~home for @a( please|)
        ~(arm|robot) (go |back |)home
        ~(arm|robot) to (the |its |)home position
        (move|bring|send) @a back (home|to home)
        (take|drive|guide) @a (back |)home
        (put|get) @a (in|into) (the|its) home position
        make @a (go|return) home
        get @a to go home
        have @a go (back |)home
        have @a in its home position
        let @a return (home|to home)
        (stow|store|rest) @a
        fold @a (in|away|back)
        pull @a back home
        park @a (now|at home)
        set @a to (home|its home position)
        return home with @a
        return @a home
        (reset|restore) @a to (home|the home position)
        run @a (home|to the home position)
        go to (the |)home position with @a
        do the homing of @a
        start homing @a
    """,
    "arm_stop": """
        ~would you mind stopping @a
        ~we (want|need) @a to stop
        ~i('d| would) like @a to stop
        ~i need @a to stop( moving|)
        ~let's stop @a
        ~how about stopping @a
        ~@a (needs|has) to stop
        ~@a must (stop|halt|not move)
        ~@a must stop moving
        ~(can|could) @a (stop|halt)
        ~@a (stop|halt|freeze)
        ~@a should (halt|stand still|stay still|freeze)
        ~@a should not move( anymore| any further|)
        ~@a is too close stop it
        ~@a is going too far stop it
        ~no more moving of @a
        ~no further with @a
        ~that's far enough for @a
        ~(arm|robot) (halt|freeze)
        ~(halt|stop|freeze) the motion of @a
        stop the (motion|movement) of @a
        end the (motion|movement) of @a
        interrupt the (motion|movement) of @a
        quit moving @a
        stop @a (now|immediately|where it is)
        hold @a (still|where it is)
        hold @a in place
        lock @a in place
        keep @a (there|in place|where it is)
        leave @a (there|where it is)
        let @a (stop|stay|rest) (there|right there|where it is)
        let @a stand still
        make @a (freeze|stand still|stay still)
        get @a to (freeze|stand still|halt)
        have @a (stand still|halt)
        don't let @a move( any further|)
        ~don't move @a an inch
        cease moving @a
        pause @a
        brake @a
    """,
    "arm_joint": """
        ~would you mind turning joint {joint} by {deg}
        ~how about joint {joint} at {deg}
        ~joint {joint} (needs|has) to be at {deg}
        ~joint {joint} must go to {deg}
        ~joint {joint} at {deg}
        ~joint {joint} should (turn|rotate) (by |){deg}{turn?}
        ~joint {joint} should be turned by {deg}{turn?}
        ~i('d| would) like joint {joint} at {deg}
        ~i want joint {joint} (turned|rotated) by {deg}{turn?}
        ~we (want|need) joint {joint} at {deg}
        ~let's (turn|rotate) joint {joint} by {deg}{turn?}
        ~let's have joint {joint} at {deg}
        ~(can|could) joint {joint} (turn|go) (by |to ){deg}
        ~{deg} {turn} with joint {joint}
        ~{deg} for joint {joint}
        set joint {joint} at {deg}
        (get|drive|run) joint {joint} to {deg}
        (swivel|pivot|spin) joint {joint} (by |){deg}{turn?}
        (swivel|pivot) joint {joint} to {deg}
        (swivel|pivot|swing|twist) joint {joint} {turn} by {deg}
        move joint {joint} {turn} by {deg}
        move joint {joint} {deg}( {turn}|)
        have joint {joint} (turn|rotate) (by |){deg}{turn?}
        make joint {joint} (turn|rotate) (by |){deg}{turn?}
        have joint {joint} at {deg}
        let joint {joint} (rotate|swing) (by |){deg}{turn?}
        (hold|keep) joint {joint} at {deg}
        (adjust|change) joint {joint} to {deg}
        adjust joint {joint} by {deg}{turn?}
        turn joint {joint} to {deg}
        turn joint number {joint} (by |to |){deg}
        rotate joint number {joint} (by |to |){deg}
        (position|place) joint {joint} at {deg}
        shift joint {joint} by {deg}{turn?}
        bring joint {joint} around by {deg}
        set the angle of joint {joint} to {deg}
        ~the angle of joint {joint} should be {deg}
        ~angle of joint {joint} (to |){deg}
    """,
    "grip_open": """
        set @p free
        lay @p down
        lay down @p
        place @p (down|there|here)
        deposit @p
        give @p free
        unclamp @p
        unhand @p
        ~you can let go of @p( now|)
        ~i want @p released
        ~@p can be (released|dropped)
        ~@p should be (released|let go)
        ~don't hold @p( anymore|)
        ~no more holding @p
        stop (holding|gripping) @p
        ~let go( please|)
        release the grip( on @p|)
        loosen the grip( on @p|)
        open the (grip|fingers)
        spread the fingers
        hand @p over
        ~would you mind dropping @p
    """,
    "grip_close": """
        grab hold of @p
        get @p
        get a grip on @p
        clutch @p
        clasp @p
        pinch @p
        lift @p
        collect @p
        keep (holding|hold of) @p
        don't (drop|let go of) @p
        hold on to @p
        hold @p (tight|firmly)
        secure @p
        snatch @p
        take @p (up|into the gripper)
        ~i want @p (gripped|held|picked up)
        ~@p should be (gripped|held|picked up)
        ~would you mind grabbing @p
        ~how about picking up @p
        close the (grip|fingers)
        tighten the grip
        ~gripper shut
        grip (it|it tight)
        close on @p
    """,
    "grip_force": """
        ~would you mind gripping with {force} {percent}( force|)
        ~i('d| would) like @g at {force} {percent}( force|)
        ~i want {force} {percent} (force|grip force|gripping force)
        ~i want @p (held|gripped) (at|with) {force} {percent}( force|)
        ~we (want|need) @g at {force} {percent}( force|)
        ~we (want|need) {force} {percent} (force|grip force)
        ~let's have @g at {force} {percent}( force|)
        ~how about {force} {percent} (grip force|force on @g)
        ~@g (needs|has) to (close|grip) (at|with) {force} {percent}( force|)
        ~@g should (close|grip|hold) (at|with) {force} {percent}( force|)
        ~@g should be at {force} {percent}( force|)
        ~(can|could) @g (close|grip) with {force} {percent}( force|)
        ~the (grip force|gripper force) should be {force} {percent}
        ~@p should be (held|gripped) with {force} {percent}( force|)
        ~grip (at|with|to) {force} {percent}( force|)
        ~{force} {percent} (grip|gripping) force( please|)
        ~{force} {percent} on @g
        ~with {force} {percent} force grip @p
        close @g with a force of {force} {percent}
        grip @p with a force of {force} {percent}
        hold @p with a force of {force} {percent}
        grip with a force of {force} {percent}
        grab with {force} {percent}( force|)
        hold on (at|with) {force} {percent}( force|)
        let @g (close|grip) (at|with) {force} {percent}( force|)
        have @g (close|grip) (at|with) {force} {percent}( force|)
        make @g (close|grip) (at|with) {force} {percent}( force|)
        (adjust|change) the (grip|grip force|gripper force) to {force} {percent}
        (bring|put|turn) the (grip force|gripper force) to {force} {percent}
        (adjust|change|bring) @g to {force} {percent}( force|)
        keep @g at {force} {percent}( force|)
        keep @p gripped (at|with) {force} {percent}( force|)
        run @g (at|with) {force} {percent} force
        apply {force} {percent} (force|grip) (to|on) @p
        put {force} {percent} (force|grip) on @p
        use {force} {percent} (force|of the force) (with|on|for) @g
        pinch @p (at|with) {force} {percent}( force|)
        clasp @p (at|with) {force} {percent}( force|)
        squeeze (at|with) {force} {percent}( force|)
        pick @p up (at|with) {force} {percent}( force|)
        lift @p with {force} {percent}( force|)
    """,
    "wait": """
        ~would you mind waiting (for |){time}
        ~i('d| would) like a (pause|break) of {time}
        ~i need (you to wait |a pause of |){time}
        ~we need to wait (for |){time}
        ~let's (wait|pause) (for |){time}
        ~let's take a (break|pause) of {time}
        ~how about a (pause|break) of {time}
        ~(pause|break|wait) of {time}( please|)
        ~a {time} (pause|break)( please|)
        ~{time} of (waiting|rest|pause)
        ~{time} wait
        ~nothing (should happen |)for {time}
        ~no (moves|action|work) for {time}
        ~for the next {time} do nothing
        ~in {time} (go on|continue|carry on)
        ~we('ll| will) go on in {time}
        ~we('ll| will) wait (for |){time}
        continue (after|in) {time}
        go on after {time}
        (delay|delay everything) (for |by |){time}
        (halt|stop) for {time}
        stop and wait (for |){time}
        hold everything for {time}
        hang on for {time}
        stand still for {time}
        stay (there|here|put) for {time}
        stay where you are for {time}
        keep still for {time}
        keep (waiting|idle) for {time}
        remain idle for {time}
        be idle for {time}
        sit (still|idle) for {time}
        count {time}
        insert a (pause|break|wait) of {time}
        add a (pause|delay) of {time}
        have a (break|pause) of {time}
        make a (break|stop) of {time}
        give me {time}
        allow {time} to pass
        wait another {time}
        wait exactly {time}
        wait until {time} have passed
        let {time} go by
        spend {time} waiting
    """,
    "stop_all": """
        ~stop stop stop
        ~stop( now| it|)
        ~emergency( stop everything| stop now|)
        ~danger( stop everything|)
        ~help stop everything
        ~something is wrong stop everything
        ~there's (a fire|smoke) stop everything
        ~someone is (hurt|in danger) stop everything
        ~i want everything to stop
        ~i want (everything|all machines) (off|stopped)
        ~i need (everything|all machines) (off|stopped|to stop)
        ~we need to stop (everything|all machines)
        ~would you mind stopping (everything|all machines)
        ~let's (stop|shut down) (everything|all machines)
        ~everything (has|needs) to stop
        ~everything must (stop|be off)
        ~everything should (stop|be off)
        ~all machines (must|should|have to) stop
        ~all machines (must|should) be off
        ~all (stop|off)
        ~all of it (off|stop)
        ~no machine should (run|move)
        ~nothing should (run|move)( anymore|)
        (cut|kill) the power
        cut (everything|the power to all machines)
        cut power to everything
        (shut|turn|switch) it all (down|off)
        (shut down|stop|halt) the (whole |entire )(shop|plant|line)
        (stop|halt) (every machine|each machine)
        (turn|switch) off (every machine|the whole shop)
        shut (all machines|the machines) (down|off)
        shut the (whole |)(shop|plant) down
        power down (everything|all machines)
        power off (everything|all machines)
        disable (everything|all machines)
        deactivate (everything|all machines)
        halt it all
        halt the machines
        stop the machines
        stop the production
        put everything to a stop
        press the emergency (stop|button)
        trigger the emergency stop
        activate the emergency stop
        do an emergency stop
        make (everything|all machines) stop
        ~red button
    """,
}

MORE = {name: t.replace("@a", _ARM).replace("@g", _GRIP).replace("@p", _PART) for name, t in _TEXTS.items()}
