// Rows of weights as the file stores them. A buffer W of words must be declared
// before; byte offsets into it are even, of any alignment beyond (MXFP4: odd as
// well).
//
// load32(row, b, cols, w) writes elements [32b, 32b+32) of the row that begins
// at byte row, converted as package quant does it: the same operations, each
// rounded. Elements past cols are 0.

layout(constant_id = 0) const uint TYPE = 2; // as quant.Type numbers them

const uint F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q2_K = 10, Q3_K = 11, Q4_K = 12,
    Q5_K = 13, Q6_K = 14, IQ4_NL = 20, IQ4_XS = 23, BF16 = 30, MXFP4 = 39;

uint byte_at(uint o) { return W[o >> 2] >> (8u * (o & 3u)) & 0xffu; }
uint short_at(uint o) { return byte_at(o) | byte_at(o + 1u) << 8; }
float half_at(uint o) { return half_float((o & 1u) != 0u ? short_at(o) : W[o >> 2] >> (8u * (o & 2u)) & 0xffffu); }

// LOAD reads n words that begin at byte o, whatever its alignment, and nothing
// beyond the word that holds their last byte.
#define LOAD(q, n, o) { \
    uint at_ = (o) >> 2, s_ = 8u * ((o) & 3u), lo_ = W[at_]; \
    [[unroll]] for (uint i_ = 0u; i_ < n; i_++) { \
        uint hi_ = 0u; \
        if (i_ + 1u < n || s_ != 0u) hi_ = W[at_ + i_ + 1u]; \
        q[i_] = lo_ >> s_ | hi_ << (31u - s_) << 1; \
        lo_ = hi_; \
    } \
}

// HEADED reads a half at byte o, which is even, and the n words behind it.
#define HEADED(d, q, n, o) { \
    bool odd_ = ((o) & 2u) != 0u; \
    uint lo_ = W[(o) >> 2]; \
    d = half_float(odd_ ? lo_ >> 16 : lo_ & 0xffffu); \
    [[unroll]] for (uint i_ = 0u; i_ < n; i_++) { \
        uint hi_ = W[((o) >> 2) + 1u + i_]; \
        q[i_] = odd_ ? hi_ : lo_ >> 16 | hi_ << 16; \
        lo_ = hi_; \
    } \
}

// Bits [8 (j mod 4) + s, + n) of the word that holds byte j.
#define BITS(q, j, s, n) (q[(j) >> 2] >> (8u * ((j) & 3u) + (s)) & ((1u << n) - 1u))

// The 16 levels of IQ4_NL and IQ4_XS, and twice those of E2M1.
const float LEVELS[16] = float[](-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
const float E2M1[16] = float[](0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);

// The 6-bit scale and minimum of group g of Q4_K and Q5_K, packed at byte o.
void scale_min(uint o, uint g, out float scale, out float low) {
    if (g < 4u) {
        scale = float(byte_at(o + g) & 63u);
        low = float(byte_at(o + g + 4u) & 63u);
    } else {
        uint both = byte_at(o + g + 4u);
        scale = float((both & 15u) | byte_at(o + g - 4u) >> 6 << 4);
        low = float(both >> 4 | byte_at(o + g) >> 6 << 4);
    }
}

void load_plain(uint row, uint b, uint cols, out float w[32]) {
    uint n = min(32u, cols - 32u * b);
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        w[j] = 0.0;
        if (j < n) {
            uint at = 32u * b + j;
            if (TYPE == F32) w[j] = uintBitsToFloat(W[(row >> 2) + at]);
            else if (TYPE == F16) w[j] = half_at(row + 2u * at);
            else w[j] = uintBitsToFloat(short_at(row + 2u * at) << 16);
        }
    }
}

void load_pairs(uint row, uint b, out float w[32]) { // F16 and BF16, whole blocks
    uint q[16];
    LOAD(q, 16u, row + 64u * b)
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        uint h = q[j >> 1] >> (16u * (j & 1u)) & 0xffffu;
        w[j] = TYPE == F16 ? half_float(h) : uintBitsToFloat(h << 16);
    }
}

void load_legacy(uint row, uint b, out float w[32]) {
    uint bytes = TYPE == Q4_0 ? 18u : TYPE == Q4_1 ? 20u : TYPE == Q5_0 ? 22u : 24u;
    uint o = row + bytes * b;
    bool low = TYPE == Q4_1 || TYPE == Q5_1, five = TYPE == Q5_0 || TYPE == Q5_1;
    float d, m = 0.0;
    uint q[4], raw[6]; // the words behind d, or from it on, and the fifth bits in front of the others
    if (low) {
        if (five) LOAD(raw, 6u, o) else LOAD(raw, 5u, o)
        d = half_float(raw[0] & 0xffffu);
        m = half_float(raw[0] >> 16);
        [[unroll]] for (uint i = 0u; i < 5u; i++) raw[i] = raw[i + 1u];
    } else if (five) HEADED(d, raw, 5u, o)
    else HEADED(d, raw, 4u, o)
    uint h = raw[0];
    [[unroll]] for (uint i = 0u; i < 4u; i++) q[i] = five ? raw[i + 1u] : raw[i];
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        uint x = BITS(q, j & 15u, 4u * (j >> 4), 4u);
        if (five) x |= (h >> j & 1u) << 4;
        if (low) {
            float y = d * float(x);
            float z = y + m;
            w[j] = z;
        } else {
            float y = d * float(int(x) - (five ? 16 : 8));
            w[j] = y;
        }
    }
}

void load_q8(uint row, uint b, out float w[32]) {
    uint o = row + 34u * b;
    float d;
    uint q[8];
    HEADED(d, q, 8u, o)
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        float y = d * float(bitfieldExtract(int(q[j >> 2]), 8 * int(j & 3u), 8));
        w[j] = y;
    }
}

void load_q45k(uint row, uint b, out float w[32]) {
    uint o = row + (TYPE == Q4_K ? 144u : 176u) * (b >> 3), g = b & 7u;
    float d = half_at(o), dmin = half_at(o + 2u), scale, low;
    scale_min(o + 4u, g, scale, low);
    float s = d * scale;
    float m = dmin * low;
    uint q[8], h[8];
    if (TYPE == Q5_K) {
        LOAD(h, 8u, o + 16u)
        o += 32u;
    }
    LOAD(q, 8u, o + 16u + 32u * (g >> 1))
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        uint x = BITS(q, j, 4u * (g & 1u), 4u);
        if (TYPE == Q5_K) x |= BITS(h, j, g, 1u) << 4;
        float y = s * float(x);
        float z = y - m;
        w[j] = z;
    }
}

void load_q6k(uint row, uint b, out float w[32]) {
    uint o = row + 210u * (b >> 3), n = b >> 2 & 1u, r = b & 3u;
    float d = half_at(o + 208u);
    float s[2];
    uint q[8], h[8];
    [[unroll]] for (uint i = 0u; i < 2u; i++) s[i] = d * float(bitfieldExtract(int(byte_at(o + 192u + 8u * n + 2u * r + i)), 0, 8));
    LOAD(q, 8u, o + 64u * n + 32u * (r & 1u))
    LOAD(h, 8u, o + 128u + 32u * n)
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        uint x = BITS(q, j, 4u * (r >> 1), 4u) | BITS(h, j, 2u * r, 2u) << 4;
        float y = s[j >> 4] * float(int(x) - 32);
        w[j] = y;
    }
}

void load_q2k(uint row, uint b, out float w[32]) {
    uint o = row + 84u * (b >> 3), g = b & 7u;
    float d = half_at(o + 80u), dmin = half_at(o + 82u);
    float s[2], m[2];
    [[unroll]] for (uint i = 0u; i < 2u; i++) {
        uint both = byte_at(o + 2u * g + i);
        s[i] = d * float(both & 15u);
        m[i] = dmin * float(both >> 4);
    }
    uint q[8];
    LOAD(q, 8u, o + 16u + 32u * (g >> 2))
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        float y = s[j >> 4] * float(BITS(q, j, 2u * (g & 3u), 2u));
        float z = y - m[j >> 4];
        w[j] = z;
    }
}

void load_q3k(uint row, uint b, out float w[32]) {
    uint o = row + 110u * (b >> 3), g = b & 7u;
    float d = half_at(o + 108u);
    float s[2];
    [[unroll]] for (uint i = 0u; i < 2u; i++) {
        uint k = 2u * g + i;
        uint low = byte_at(o + 96u + (k & 7u)) >> (4u * (k >> 3)) & 15u;
        uint high = byte_at(o + 104u + (k & 3u)) >> (2u * (k >> 2)) & 3u;
        s[i] = d * float(int(low | high << 4) - 32);
    }
    uint q[8], h[8];
    LOAD(q, 8u, o + 32u + 32u * (g >> 2))
    LOAD(h, 8u, o)
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        uint x = BITS(q, j, 2u * (g & 3u), 2u) | BITS(h, j, g, 1u) << 2;
        float y = s[j >> 4] * float(int(x) - 4);
        w[j] = y;
    }
}

void load_levels(uint row, uint b, out float w[32]) { // IQ4_NL, IQ4_XS, MXFP4
    uint o;
    float d;
    if (TYPE == IQ4_XS) {
        o = row + 136u * (b >> 3);
        uint g = b & 7u;
        uint s = (byte_at(o + 4u + (g >> 1)) >> (4u * (g & 1u)) & 15u) | (short_at(o + 2u) >> (2u * g) & 3u) << 4;
        d = half_at(o) * float(int(s) - 32);
        o += 8u + 16u * g;
    } else if (TYPE == IQ4_NL) {
        o = row + 18u * b;
        d = half_at(o);
        o += 2u;
    } else {
        o = row + 17u * b;
        uint e = byte_at(o);
        d = uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);
        o += 1u;
    }
    uint q[4];
    LOAD(q, 4u, o)
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        uint x = BITS(q, j & 15u, 4u * (j >> 4), 4u);
        float y = d * (TYPE == MXFP4 ? E2M1[x] : LEVELS[x]);
        w[j] = y;
    }
}

void load32(uint row, uint b, uint cols, out float w[32]) {
    if (TYPE == F32 || TYPE == F16 || TYPE == BF16) {
        if (TYPE != F32 && 32u * b + 32u <= cols) load_pairs(row, b, w);
        else load_plain(row, b, cols, w);
    } else if (TYPE == Q4_0 || TYPE == Q4_1 || TYPE == Q5_0 || TYPE == Q5_1) load_legacy(row, b, w);
    else if (TYPE == Q8_0) load_q8(row, b, w);
    else if (TYPE == Q4_K || TYPE == Q5_K) load_q45k(row, b, w);
    else if (TYPE == Q6_K) load_q6k(row, b, w);
    else if (TYPE == Q2_K) load_q2k(row, b, w);
    else if (TYPE == Q3_K) load_q3k(row, b, w);
    else load_levels(row, b, w);
}
