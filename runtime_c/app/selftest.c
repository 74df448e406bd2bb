#include <string.h>

#include "app/answer.h"
#include "app/chat.h"
#include "app/generate.h"
#include "app/modes.h"
#include "app/output.h"
#include "sample/sampler.h"
#include "store/model_tables.h"

static Prompt prompt;

/* First place where the answer differs from the reference's; MODEL_N_GOLDEN if none does. */
static int first_difference(const Report *report) {
    int at = 0;
    while (at < MODEL_N_GOLDEN && at < report->n_ids && report->ids[at] == model_golden_ids[at]) {
        at++;
    }
    return at;
}

static void print_verdict(const Report *report, bool equal) {
    write_text(&out, equal ? "selftest passed: " : "selftest FAILED: ");
    write_integer(&out, first_difference(report));
    write_text(&out, " of ");
    write_integer(&out, MODEL_N_GOLDEN);
    write_text(&out, " tokens equal\nlogits hash ");
    write_hash(&out, report->logits_hash);
    write_text(&out, "\nreference   ");
    write_hash(&out, model_golden_hash);
    write_text(&out, "\n");
}

/* What the comparison says, as a fault. */
static colibri_status judge(Report *report) {
    int at = first_difference(report);
    if (at < MODEL_N_GOLDEN || report->n_ids != MODEL_N_GOLDEN) {
        return report_fault(report, COLIBRI_E_SELFTEST,
                            "token %d of %d differs from the reference; the binary or its build is wrong", at + 1,
                            MODEL_N_GOLDEN);
    }
    if (report->logits_hash != model_golden_hash) {
        return report_fault(report, COLIBRI_E_SELFTEST,
                            "all %d tokens equal the reference's, the logits do not; the binary or its build is wrong",
                            MODEL_N_GOLDEN);
    }
    return COLIBRI_OK;
}

colibri_status selftest(int context, bool (*must_stop)(void), Report *report) {
    Generation how = {.max_tokens = MODEL_N_GOLDEN, .context = context, .must_stop = must_stop};
    report->has_expected_hash = true;
    report->expected_hash = model_golden_hash;
    sampler_init(0.0f, 1.0f, 0);
    colibri_status status =
        prompt_from_user(model_golden_prompt, strlen(model_golden_prompt), false, context, &prompt, report);
    if (status == COLIBRI_OK) {
        status = generate(&prompt, &how, report);
    }
    return status != COLIBRI_OK || report->stop == STOP_INTERRUPTED ? status : judge(report);
}

colibri_status run_selftest(const Options *options, Report *report) {
    colibri_status status = selftest(options->context, NULL, report);
    if (report->stop == STOP_INTERRUPTED || (status != COLIBRI_OK && status != COLIBRI_E_SELFTEST)) {
        return status;
    }
    print_verdict(report, status == COLIBRI_OK);
    colibri_status written = answer_flush(report);
    return status != COLIBRI_OK ? status : written;
}
