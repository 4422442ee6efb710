"""The speed of a job with a given layout, before anything runs: resources in a network, solved or simulated.

Begin with `predictions.speed`. A layout (`layouts`) and costs (`costs`) become resources and groups of
trainers (`resources`). `flows` solves these: it finds the speed in the long run. `calibrations` fits the
costs to runs. `simulations` makes the same steps one by one, which checks what `flows` finds. `queues` is the
closed form for like trainers, with measured times in place of costs: diagnosis computes gains with it.

The equation of a step, as `costs.network` sets it up and `flows.flow` solves it::

    T = own_seconds + input + compute + exchange         seconds for a step of a trainer
    X = n / T,  n = trainers * steps_in_flight           steps a second of a group of like trainers
    examples a second = batch_size * (sum of X over the groups)

The last three terms of T are phases: each lasts as long as the slowest of its draws on resources.

    input     1 batch of the trainer's input and of the storage that all trainers read from, if
              `input_steps_per_second` and `storage_steps_per_second` are set
    compute   core seconds of the trainer: trainer_seconds + trainer_visit_seconds * servers
    exchange  visits to all servers, side by side. A visit draws
              core seconds of the server: server_visit_seconds + server_byte_seconds * step_bytes
                  + server_row_seconds * step_rows + server_whole_byte_seconds * whole_bytes
              bytes of links, if the hosts differ: step_bytes / 2 (pull) from the server's host and to the
                  trainer's, step_bytes / 2 (push) the other way

A draw of u units on a resource (u: of all visits of the phase, u1: of its largest visit) takes::

    max(u1 / peak, max(0, u - burst) / rate)             alone
    + u / rate * u / (u + burst) * q                     wait for the q steps that are ahead
    + u * h                                              hold: h grows from 0 until use <= full

    q = max(0, Q / copies - Qc / n),   use = (sum of X * u) / (rate * copies)

Q is the mean number of steps at the resource: X * (wait + hold + u / rate / 2), summed over its draws (Little
1961; half of the step in service is left, as in M/D/1); Qc is the part of the group itself, so a step does
not wait for itself (Schweitzer 1979; Bard 1979). Several cores are taken as in Seidmann and others (1987).

    resource           unit         rate, units a second        peak  burst                        full
    quota of cores     core second  max(cores - b, cores / 10)  1     rate * 0.1 s                 0.99
    shared machine     core second  max(cores - b, cores / 10)  1     0                            1
    link, each way     byte         bits / 8 * 1448 / 1514      none  max(128 KiB, rate * 0.01 s)  0.99
    input (a trainer)  batch        input_steps_per_second      none  2 batches                    0.99
    storage            batch        storage_steps_per_second    none  2 batches a trainer          0.99

b is the background of all processes that use these cores (`trainer_background_cores`,
`server_background_cores`). Cores are drawn on at each level that has a limit: the replica, its host, the
machine. Where no level has a limit, computing takes its time and never waits: its own cores have an infinite
rate and a peak of 1.

Sources: quotas, ``scheduler/sched-bwc``; links, ``tc-tbf(8)`` and RFC 894, 791, 9293; 2 batches ahead,
``tf.data.Dataset.prefetch``; 0.99, measured of quotas. The costs are assumed at first
(`calibrations.ASSUMED` has the measurements behind them), then fitted to runs (`calibrations.calibrated`).
"""
