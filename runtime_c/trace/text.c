#include "trace/text.h"

#include "port/clock.h"
#include "trace/ring.h"

/* Where the next character goes. The longest line has its room: see TRACE_LINE_BYTES. */
typedef struct {
    char *at;
} Line;

static void text(Line *line, const char *text) {
    size_t n = strlen(text);
    memcpy(line->at, text, n);
    line->at += n;
}

/* At least n_digits of them. */
static void number(Line *line, uint64_t value, int n_digits) {
    char digits[20];
    int first = (int)sizeof digits;
    while (value > 0 || (int)sizeof digits - first < n_digits) {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    }
    memcpy(line->at, digits + first, sizeof digits - (size_t)first);
    line->at += (int)sizeof digits - first;
}

static void hexadecimal(Line *line, uint64_t value, int n_digits) {
    for (int i = n_digits - 1; i >= 0; i--) {
        *line->at++ = "0123456789abcdef"[value >> (4 * i) & 15];
    }
}

static int n_hex_digits(uint64_t value) {
    int n = 1;
    while (value >>= 4) {
        n++;
    }
    return n;
}

/* As many decimals as it takes: 62.5MHz, 24MHz. */
static void megahertz(Line *line, uint32_t hz) {
    number(line, hz / 1000000, 1);
    uint32_t rest = hz % 1000000;
    if (rest > 0) {
        int n_digits = 6;
        for (; rest % 10 == 0; n_digits--) {
            rest /= 10;
        }
        text(line, ".");
        number(line, rest, n_digits);
    }
    text(line, "MHz");
}

/* "2450 ticks (39.2us @ 62.5MHz)" */
static void duration(Line *line, uint32_t ticks) {
    uint32_t hz = clock_hz() > 0 ? clock_hz() : 1;
    uint64_t tenths = ((uint64_t)ticks * 10000000 + hz / 2) / hz;
    number(line, ticks, 1);
    text(line, " ticks (");
    number(line, tenths / 10, 1);
    text(line, ".");
    number(line, tenths % 10, 1);
    text(line, "us @ ");
    megahertz(line, hz);
    text(line, ")");
}

static void info(Line *line, const uint8_t *r) {
    text(line, "[INFO] model=");
    for (int i = 8; i < 16; i++) {
        hexadecimal(line, r[i], 2);
    }
    text(line, " layers=");
    number(line, r[2], 1);
    text(line, " experts=");
    number(line, r[3] + 1u, 1);
    text(line, " clock=");
    number(line, get_u32(r + 4), 1);
    text(line, "Hz");
}

static void token(Line *line, const uint8_t *r) {
    text(line, r[1] == TRACE_PREFILL ? "[TOKEN] prefill position=" : "[TOKEN] decode position=");
    number(line, get_u32(r + 4), 1);
    text(line, " id=");
    number(line, get_u32(r + 8), 1);
    uint32_t ticks = get_u32(r + 12);
    if (ticks != TICKS_UNKNOWN) {
        text(line, ": ");
        duration(line, ticks);
    }
}

static void routing(Line *line, const uint8_t *r) {
    text(line, "[ROUTING] layer=");
    number(line, r[1], 1);
    text(line, ", top_k=[");
    for (int i = 0; i < r[3]; i++) {
        text(line, i > 0 ? "," : "");
        number(line, r[4 + i], 1);
    }
    text(line, "], scores=[");
    for (int i = 0; i < r[3]; i++) {
        uint32_t thousandths = (get_u16(r + 8 + 2 * i) * 1000 + 32767) / 65535;
        text(line, i > 0 ? "," : "");
        number(line, thousandths / 1000, 1);
        text(line, ".");
        number(line, thousandths % 1000, 3);
    }
    text(line, "]");
}

static void expert_name(Line *line, int layer, int expert) {
    text(line, "expert_");
    number(line, (uint64_t)layer, 1);
    text(line, "_");
    number(line, (uint64_t)expert, 1);
}

static void memory(Line *line, const uint8_t *r) {
    uint64_t address = (uint64_t)get_u32(r + 12) << 32 | get_u32(r + 8);
    text(line, "[MEMORY] ");
    expert_name(line, r[1], r[2]);
    text(line, " @ 0x");
    hexadecimal(line, address, n_hex_digits(address));
    text(line, " (size=");
    number(line, get_u32(r + 4), 1);
    text(line, ")");
}

/* " attention" after "layer_0" ... */
static const char *stage_name(int stage) {
    switch (stage) {
    case TRACE_ATTENTION:
        return " attention";
    case TRACE_ROUTER:
        return " router";
    case TRACE_EXPERT:
        return " FFN";
    case TRACE_HEAD:
        return "head";
    case TRACE_EMBEDDING:
        return "embedding";
    default:
        return " experts";
    }
}

static void time_of_stage(Line *line, const uint8_t *r) {
    int stage = r[3];
    text(line, "[TIME] ");
    if (stage == TRACE_EXPERT) {
        expert_name(line, r[1], r[2]);
    } else if (stage != TRACE_HEAD && stage != TRACE_EMBEDDING) {
        text(line, "layer_");
        number(line, r[1], 1);
    }
    text(line, stage_name(stage));
    text(line, ": ");
    duration(line, get_u32(r + 8));
}

size_t trace_text(const TraceRecord *record, char bytes[TRACE_LINE_BYTES]) {
    Line line = {bytes};
    switch (record->bytes[0]) {
    case RECORD_INFO:
        info(&line, record->bytes);
        break;
    case RECORD_TOKEN:
        token(&line, record->bytes);
        break;
    case RECORD_ROUTING:
        routing(&line, record->bytes);
        break;
    case RECORD_MEMORY:
        memory(&line, record->bytes);
        break;
    default:
        time_of_stage(&line, record->bytes);
        break;
    }
    text(&line, "\n");
    return (size_t)(line.at - bytes);
}

size_t trace_text_dropped(uint32_t n, char bytes[TRACE_LINE_BYTES]) {
    Line line = {bytes};
    text(&line, "[DROPPED] ");
    number(&line, n, 1);
    text(&line, " records\n");
    return (size_t)(line.at - bytes);
}
