/* lib/data/pictures/preprocess.h -- the steps between a stored picture or array and a model's input.
 *
 *   [PRESET:]precrop=0.875:resize=256:interp=bilinear:crop=224:order=rgb:mean=0:std=255:layout=nchw
 *   channel=0:rate=16000:lead=64:frame=512:hop=512
 *   rate=16000:fbank=80:snip-edges=no:high-freq=-400
 *   ids=u16:length=128:pad-id=0
 *   tokenizer=tokenizer.json:length=128
 *
 * The order of the steps is fixed, whatever their order in the text: precrop, resize or letterbox, crop, order, (x -
 * mean) / std, layout. mean and std are on pixel values 0..255 and in the order of channels that `order` gives.
 * Recordings have channel, rate, lead, frame and hop (sound.h), then features (features.h), then mean and std on these
 * or on values from -1 to 1. Files of token ids have their element type, the number of tokens in a sample, and the id
 * for padding (token_rows.h); texts have the file of their tokenizer, whose name has no colon. INPUT/value=16000 is
 * used alone: the input has this value in every sample. Later keys override. */
#ifndef OCT_DATA_PREPROCESS_H
#define OCT_DATA_PREPROCESS_H

#include "base/buf.h"
#include "base/dtype.h"

typedef enum oct_interp {
    OCT_INTERP_BILINEAR, /* triangle, widened when shrinking: equals Pillow's BILINEAR */
    OCT_INTERP_LINEAR,   /* two pixels a side, never widened: equals OpenCV's INTER_LINEAR */
    OCT_INTERP_BICUBIC,  /* a = -0.5, widened: equals Pillow's BICUBIC */
    OCT_INTERP_NEAREST
} oct_interp;

typedef enum oct_order { OCT_ORDER_RGB, OCT_ORDER_BGR, OCT_ORDER_GRAY } oct_order;
/* What a model takes instead of the samples of a recording. */
typedef enum oct_features {
    OCT_FEATURES_NONE,
    OCT_FEATURES_LOG_MEL,
    OCT_FEATURES_FBANK,
    OCT_FEATURES_MFCC
} oct_features;
enum {
    OCT_FEATURES_RATE = 16000,
    OCT_MEL_BINS = 23,
    OCT_FRAME_LENGTH = 25,
    OCT_FRAME_SHIFT = 10
}; /* where not given */
typedef enum oct_layout { OCT_LAYOUT_NCHW, OCT_LAYOUT_NHWC } oct_layout;

/* The steps of one input. Zeroed: none; pictures become RGB, 0..255, NCHW. */
typedef struct oct_steps {
    int precrop_w, precrop_h; /* centre, before resizing, 0: none */
    double precrop; /* a centre crop by a share of each side, rounded to the nearest pixel, halves to even; 0: none */
    int letter_w, letter_h; /* size into which the whole picture is fitted, centred, without distortion; 0: none */
    int pad;                /* what stands around it, 0..255 */
    bool has_pad;           /* else 114 */
    int resize_short;       /* shorter side, 0: none */
    int resize_w, resize_h; /* stretch, 0: none */
    oct_interp interp;
    int crop_w, crop_h; /* centre, 0: none */
    oct_order order;
    bool has_order;
    int n_mean, n_std; /* 0 (none), 1 (all channels alike) to 4 */
    float mean[4], std[4];
    oct_layout layout;
    bool has_layout;
    int channel;          /* for recordings: 0: the mean of all channels; k + 1: channel k */
    int rate;             /* samples per second; 0: the rate of the file */
    int lead, frame, hop; /* samples; frame 0: the recording as a whole; hop 0: as long as the frame */
    oct_features features;
    int n_features;                /* of a frame */
    int mel_bins;                  /* from which cepstra are made; 0: OCT_MEL_BINS, and so on */
    int frame_length, frame_shift; /* milliseconds */
    int high_freq;                 /* Hz; below zero: less than half the rate */
    bool mirrored;                 /* snip-edges=no */
    bool no_energy;                /* use-energy=no */
    bool normalize_samples;        /* from -1 to 1; else from -32768 to 32767 */
    oct_dtype ids;                 /* element type of token ids in a file without a header; undefined: not given */
    int length;                    /* number of tokens in a sample; 0: all of them */
    bool has_pad_id;               /* shorter samples are filled up */
    int64_t pad_id;
    char tokenizer[256]; /* the file that says how texts become ids; "": samples are ids */
    bool has_value;      /* the input has this value in every sample, so that the data need not contain it */
    double value;
} oct_steps;

/* Reads one text into the steps of the inputs: steps[i] belongs to names[i]. A step without INPUT/ goes to every
 * input. Unknown keys, presets and inputs are OCT_EUSAGE with the nearest known name. */
oct_status oct_steps_parse(const char *text, const char *const *names, size_t n, oct_steps *steps, oct_err *err);

/* Whether the steps of one input, all read, go together: OCT_EUSAGE. */
oct_status oct_steps_check(const oct_steps *s, oct_err *err);

bool oct_steps_any(const oct_steps *s);
bool oct_steps_of_sound(const oct_steps *s);  /* whether any is for recordings alone */
bool oct_steps_of_tokens(const oct_steps *s); /* whether any is for files of token ids alone */
int oct_steps_pad(const oct_steps *s);        /* the value of pixels around a letterboxed picture */
void oct_steps_text(const oct_steps *s, const char *prefix, oct_buf *out); /* canonical; prefix "" or "INPUT/" */
/* "shorter side to 256 (bilinear), centre crop 224x224, ..."; picture: also says what happens to pictures without any
 * step. */
void oct_steps_words(const oct_steps *s, bool picture, oct_buf *out);

#endif
