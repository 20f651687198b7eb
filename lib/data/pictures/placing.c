/* Sizes and places of what the steps make of a picture. */
#include "data/pictures/placing.h"

#include <math.h>

static int share_of(int side, double share)
{
    const int n = (int)rint(side * share);
    return n < 1 ? 1 : n;
}

void oct_precrop_size(const oct_steps *s, int w, int h, int *pw, int *ph)
{
    *pw = s->precrop_w ? s->precrop_w : s->precrop > 0 ? share_of(w, s->precrop) : w;
    *ph = s->precrop_w ? s->precrop_h : s->precrop > 0 ? share_of(h, s->precrop) : h;
}

void oct_letter_size(const oct_steps *s, int w, int h, int *lw, int *lh)
{
    const double r = fmin((double)s->letter_w / w, (double)s->letter_h / h);
    *lw = (int)rint(w * r);
    *lh = (int)rint(h * r);
    *lw = *lw < 1 ? 1 : *lw;
    *lh = *lh < 1 ? 1 : *lh;
}

void oct_resize_size(const oct_steps *s, int w, int h, int *rw, int *rh)
{
    const int n = s->resize_short;
    *rw = s->resize_w ? s->resize_w : w;
    *rh = s->resize_w ? s->resize_h : h;
    if (n && w <= h) {
        *rw = n;
        *rh = (int)((int64_t)n * h / w);
    } else if (n) {
        *rh = n;
        *rw = (int)((int64_t)n * w / h);
    }
}

int oct_centre_of(int size, int crop)
{
    return (size - crop) / 2;
}

static void move(oct_placing *p, double x, double y)
{
    p->tx += x;
    p->ty += y;
}

static void scale(oct_placing *p, double x, double y)
{
    p->sx *= x;
    p->tx *= x;
    p->sy *= y;
    p->ty *= y;
}

oct_placing oct_placing_of(const oct_steps *s, int w, int h)
{
    oct_placing p = { 1, 1, 0, 0 };
    int nw, nh;
    oct_precrop_size(s, w, h, &nw, &nh);
    move(&p, -oct_centre_of(w, nw), -oct_centre_of(h, nh));
    w = nw;
    h = nh;
    if (s->letter_w) {
        oct_letter_size(s, w, h, &nw, &nh);
        scale(&p, (double)nw / w, (double)nh / h);
        move(&p, oct_centre_of(s->letter_w, nw), oct_centre_of(s->letter_h, nh));
        w = s->letter_w;
        h = s->letter_h;
    }
    oct_resize_size(s, w, h, &nw, &nh);
    scale(&p, (double)nw / w, (double)nh / h);
    if (s->crop_w)
        move(&p, -oct_centre_of(nw, s->crop_w), -oct_centre_of(nh, s->crop_h));
    return p;
}
