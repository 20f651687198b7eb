#!/usr/bin/env python3
"""Prints the polynomial coefficients of lib/kernels/math.h: weighted minimax fits (Remez exchange, mpmath)."""
import struct
from mpmath import mp, mpf, matrix, lu_solve, exp, log, erf, erfc, sqrt, sin, cos, tan, atan, pi, cos as mcos

mp.dps = 60


def remez(f, weight, lo, hi, degree, rounds=12):
    """Coefficients c[0..degree] that minimise max |weight(x) * (sum c[i] x^i - f(x))| on [lo, hi]."""
    n = degree + 2
    floor = max(weight(lo), weight(hi)) / 50  # a weight that vanishes at zero would leave a point free
    raw, weight = weight, lambda x: max(raw(x), floor)
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mcos(pi * i / (n - 1)) for i in range(n)]
    grid = [lo + (hi - lo) * (mpf(i) + mpf(1) / 2) / 1500 for i in range(1500)]
    for _ in range(rounds):
        a, b = matrix(n, n), matrix(n, 1)
        for i, x in enumerate(xs):
            for j in range(degree + 1):
                a[i, j] = x ** j
            a[i, degree + 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        c = lu_solve(a, b)
        err = [weight(x) * (sum(c[j] * x ** j for j in range(degree + 1)) - f(x)) for x in grid]
        peaks, start = [], 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (err[i] > 0) != (err[start] > 0):
                peaks.append(max(range(start, i), key=lambda k: abs(err[k])))
                start = i
        while len(peaks) > n:
            peaks.pop(0 if abs(err[peaks[0]]) < abs(err[peaks[-1]]) else -1)
        if len(peaks) < n:
            break
        new = [grid[p] for p in peaks]
        if max(abs(p - q) for p, q in zip(new, xs)) < (hi - lo) / 1000:
            break
        xs = new
    return [c[j] for j in range(degree + 1)], max(abs(e) for e in err)


def show(name, fit, single):
    c, err = fit
    print(f"{name}: largest weighted error {float(err):.3g}")
    for v in c:
        print("   ", (struct.unpack("f", struct.pack("f", float(v)))[0].hex() + "f") if single else float(v).hex(), f"{float(v):.9g}")


h = log(2) / 2 * mpf("1.005")
# exp(r) = 1 + r + r^2 P(r)
show("expf", remez(lambda r: (exp(r) - 1 - r) / r ** 2, lambda r: r ** 2 / exp(r) if r < 0 else r ** 2, -h, h, 4), True)
show("exp", remez(lambda r: (exp(r) - 1 - r) / r ** 2, lambda r: r ** 2, -h, h, 10), False)
# log(1 + f) = f - f^2 / 2 + f^3 P(f)
show("logf", remez(lambda f: (log(1 + f) - f + f ** 2 / 2) / f ** 3, lambda f: abs(f ** 3 / log(1 + f)),
                   sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 8), True)
# log((1 + s) / (1 - s)) = 2 s + s^3 Q(s^2)
m = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2
show("log", remez(lambda z: (log((1 + sqrt(z)) / (1 - sqrt(z))) - 2 * sqrt(z)) / sqrt(z) ** 3, lambda z: z, mpf("1e-9"), m, 7), False)
# erf(x) = x + x P(x^2), |x| <= 0.9
show("erf small", remez(lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: mpf(1), mpf("1e-9"), mpf("0.9") ** 2, 5), True)
# erf(x) = 1 - exp(-x G(x)), 0.9 <= x <= 4
show("erf large", remez(lambda t: -log(erfc(t)) / t, lambda t: t * erfc(t), mpf("0.88"), mpf(4), 7), True)
# sin r = r + r^3 S(r^2), cos r = 1 - r^2 / 2 + r^4 C(r^2)
q = (pi / 4 * mpf("1.01")) ** 2
show("sin", remez(lambda z: (sin(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3, lambda z: z, mpf("1e-9"), q, 4), False)
show("cos", remez(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2, lambda z: z ** 2, mpf("1e-9"), q, 3), False)
# the same in double precision: sin, cos; atan r = r + r^3 A(r^2), |r| <= sqrt 2 - 1
show("sin double", remez(lambda z: (sin(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3, lambda z: z, mpf("1e-9"), (pi / 4 * mpf("1.001")) ** 2, 6), False)
show("cos double", remez(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2, lambda z: z ** 2, mpf("1e-9"), (pi / 4 * mpf("1.001")) ** 2, 6), False)
show("atan", remez(lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z, mpf("1e-9"), tan(pi / 8) ** 2 * mpf("1.001"), 11), False)
p = pi / 2
for i in range(3):
    print("pi/2 part", i, float(p).hex())
    p -= mpf(float(p))
mp.dps = 420
v = 2 / pi
words = []
for _ in range(40):
    v *= 2 ** 32
    words.append(int(v))
    v -= int(v)
print("2/pi words", ", ".join(f"0x{w:08x}u" for w in words))
l2 = log(2)
for bits in (12, 15):
    hi = mpf(int(l2 * 2 ** bits)) / 2 ** bits
print("ln2 float hi", float(int(l2 * 2 ** 15) / mpf(2) ** 15).hex(), "lo", float(l2 - mpf(int(l2 * 2 ** 15)) / 2 ** 15).hex())
print("ln2 double hi", float(int(l2 * 2 ** 40) / mpf(2) ** 40).hex(), "lo", float(l2 - mpf(int(l2 * 2 ** 40)) / 2 ** 40).hex())
