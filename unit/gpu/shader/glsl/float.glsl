// Floating point that gives the same bits in every kernel of a device. The
// generator decorates every operation so that no driver fuses or reorders it
// (as if all variables were precise). Halves are converted with integer
// operations: no feature of the device is needed, and subnormal ones are exact.

float half_float(uint h) {
    uint e = h & 0x7c00u, m = h & 0x3ffu;
    float f = uintBitsToFloat((h & 0x7fffu) * 8192u + 0x38000000u);
    if (e == 0u) f = float(m) * 5.9604644775390625e-8;
    if (e == 0x7c00u) f = uintBitsToFloat(m << 13 | 0x7f800000u);
    return uintBitsToFloat(floatBitsToUint(f) | (h & 0x8000u) << 16);
}

// float_half rounds to nearest, ties to even.
uint float_half(float f) {
    uint u = floatBitsToUint(f), sign = u >> 16 & 0x8000u, x = u & 0x7fffffffu;
    if (x > 0x7f800000u) return sign | 0x7e00u | (x >> 13 & 0x3ffu);
    if (x >= 0x477ff000u) return sign | 0x7c00u;
    uint shift = 13u, bias = (127u - 15u) << 23;
    if (x < 0x38800000u) {
        // A subnormal half counts units of 2^-24.
        uint e = x >> 23;
        if (e < 102u) return sign;
        shift = 126u - e;
        x = (x & 0x7fffffu) | 0x800000u;
        bias = 0u;
    }
    x -= bias;
    uint up = (1u << (shift - 1u)) - 1u + (x >> shift & 1u);
    return sign | (x + up) >> shift;
}

// exponential is e^x to about one unit in the last place (Cephes' expf, with
// fused steps), 0 below -87.3 and infinite above 88.7.
float exponential(float x) {
    if (!(x >= -87.3)) return isnan(x) ? x : 0.0;
    if (x > 88.7) return uintBitsToFloat(0x7f800000u);
    float n = roundEven(x * 1.44269504088896341);
    float r = fma(n, -0.693359375, x);
    r = fma(n, 2.12194440e-4, r);
    float p = 1.9875691500e-4;
    p = fma(p, r, 1.3981999507e-3);
    p = fma(p, r, 8.3334519073e-3);
    p = fma(p, r, 4.1665795894e-2);
    p = fma(p, r, 1.6666665459e-1);
    p = fma(p, r, 5.0000001201e-1);
    float y = fma(p, r * r, r);
    y = y + 1.0;
    // In two steps, because 2^128 is no float.
    int k = int(n), a = k >> 1;
    float z = y * uintBitsToFloat(uint(a + 127) << 23);
    z = z * uintBitsToFloat(uint(k - a + 127) << 23);
    return z;
}

float hyperbolic_tangent(float x) {
    float a = abs(x);
    if (a < 0.625) {
        float z = x * x;
        float p = -5.70498872745e-3;
        p = fma(p, z, 2.06390887954e-2);
        p = fma(p, z, -5.37397155531e-2);
        p = fma(p, z, 1.33314422036e-1);
        p = fma(p, z, -3.33332819422e-1);
        float y = fma(p * z, x, x);
        return y;
    }
    float e = exponential(2.0 * a);
    float y = 1.0 - 2.0 / (1.0 + e);
    return x < 0.0 ? -y : (isnan(x) ? x : y);
}
