#include "app/generate.h"

#include "app/interrupt.h"
#include "port/clock.h"
#include "sample/sampler.h"
#include "store/model_tables.h"
#include "trace/trace.h"

bool is_end_of_sequence(int token) {
    for (int i = 0; i < MODEL_N_EOS; i++) {
        if (model_eos_ids[i] == token) {
            return true;
        }
    }
    return false;
}

static colibri_status not_finite(Report *report) {
    int layer = colibri_fault_layer();
    if (layer >= 0 && layer < MODEL_N_LAYERS) {
        return report_fault(report, COLIBRI_E_NOT_FINITE,
                            "NaN or infinity in layer %d at position %d; check the weights with --selftest", layer,
                            colibri_position());
    }
    return report_fault(report, COLIBRI_E_NOT_FINITE,
                        "NaN or infinity in the logits at position %d; check the weights with --selftest",
                        colibri_position());
}

/* Reports why a feed failed; `token` is the one whose fault it is. */
static colibri_status feed_fault(colibri_status status, int token, Report *report) {
    if (status == COLIBRI_E_NOT_FINITE) {
        return not_finite(report);
    }
    return report_fault(report, status, "token %d at position %d: %s", token, colibri_position(),
                        colibri_status_name(status));
}

colibri_status feed(int token, bool want_logits, Report *report) {
    colibri_status status = colibri_feed(token, want_logits);
    trace_flush();
    return status == COLIBRI_OK ? COLIBRI_OK : feed_fault(status, token, report);
}

static bool stops(bool (*must_stop)(void)) {
    return must_stop != NULL ? must_stop() : interrupted();
}

/* While a debug build records, tokens are fed one by one: each record is of one token. */
#if TRACE_COMPILED
static int largest_batch(void) {
    return trace_mask() != 0 ? 1 : MODEL_BATCH;
}
#else
static int largest_batch(void) {
    return MODEL_BATCH;
}
#endif

/* Tokens in the next batch for a caller with a must_stop of his own, who has others waiting while it runs. */
static int paced_batch = 1;

/* Half as many after half a second, twice as many after less than an eighth of one. */
static void adapt_pace(uint64_t ticks) {
    if (ticks > clock_hz() / 2 && paced_batch > 1) {
        paced_batch /= 2;
    } else if (ticks < clock_hz() / 8 && paced_batch <= MODEL_BATCH / 2) {
        paced_batch *= 2;
    }
}

/* Feeds the next tokens of a prompt. */
static colibri_status feed_next(const Prompt *prompt, bool has_waiters, Report *report) {
    const int *ids = prompt->ids + colibri_position();
    int left = prompt->n_ids - colibri_position();
    int most = largest_batch();
    most = has_waiters && paced_batch < most ? paced_batch : most;
    int n = left < most ? left : most;
    uint64_t start = clock_ticks();
    colibri_status status = colibri_feed_batch(ids, n, n == left);
    trace_flush();
    if (status != COLIBRI_OK) {
        return feed_fault(status, prompt->ids[colibri_position()], report);
    }
    if (has_waiters && n == paced_batch) {
        adapt_pace(clock_ticks() - start);
    }
    return COLIBRI_OK;
}

colibri_status feed_prompt(const Prompt *prompt, bool (*must_stop)(void), Report *report) {
    colibri_reset();
    report->n_prompt_tokens = prompt->n_ids;
    trace_phase(TRACE_PREFILL);
    while (colibri_position() < prompt->n_ids) {
        if (stops(must_stop)) {
            report->stop = STOP_INTERRUPTED;
            return COLIBRI_OK;
        }
        colibri_status status = feed_next(prompt, must_stop != NULL, report);
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    trace_phase(TRACE_DECODE);
    return COLIBRI_OK;
}

colibri_status choose(int *token, Report *report) {
    const float *logits = colibri_logits();
    int picked = sampler_pick(logits);
    if (picked < 0) {
        return not_finite(report);
    }
    report->logits_hash = logits_hash_update(report->logits_hash, logits, MODEL_VOCAB_SIZE);
    report->ids[report->n_ids++] = picked;
    report->n_tokens = report->n_ids;
    *token = picked;
    return COLIBRI_OK;
}

/* Why the answer ends with the token just chosen; STOP_NONE: it goes on. */
static Stop why_stop(int token, const Generation *how, const Report *report) {
    if (is_end_of_sequence(token)) {
        return STOP_EOS;
    }
    if (report->n_ids >= how->max_tokens) {
        return STOP_LENGTH;
    }
    if (colibri_position() >= how->context) {
        return STOP_CONTEXT;
    }
    return stops(how->must_stop) ? STOP_INTERRUPTED : STOP_NONE;
}

colibri_status generate(const Prompt *prompt, const Generation *how, Report *report) {
    colibri_status status = feed_prompt(prompt, how->must_stop, report);
    while (status == COLIBRI_OK && report->stop == STOP_NONE) {
        int token = 0;
        status = choose(&token, report);
        if (status != COLIBRI_OK) {
            break;
        }
        report->stop = why_stop(token, how, report);
        if (how->on_token != NULL && report->stop != STOP_EOS) {
            status = how->on_token(token);
        }
        if (status == COLIBRI_OK && report->stop == STOP_NONE) {
            status = feed(token, true, report);
        }
    }
    return status;
}
