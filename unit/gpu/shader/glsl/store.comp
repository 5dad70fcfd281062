#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Writes rows of keys and values into the rings of their slots. An invocation
// writes a word, one value or two halves, or two blocks of Q8_0, 17 words.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Keys { float K[]; };
layout(std430, binding = 1) readonly buffer Values { float V[]; };
layout(std430, binding = 2) writeonly buffer KeyCache { uint CK[]; };
layout(std430, binding = 3) writeonly buffer ValueCache { uint CV[]; };
layout(std430, binding = 4) readonly buffer Rows { uvec4 R[]; }; // token, position, slot, index

layout(push_constant) uniform Push {
    uint k_at, k_stride, k_width, v_at, v_stride, v_width;
    uint ring; // rows of a slot
};

layout(constant_id = 0) const uint KV = 0; // as unit.KV numbers the types
const uint F32 = 0, F16 = 1, Q8_0 = 2;

#include "float.glsl"

uint parts(uint n) { return KV == Q8_0 ? (n + 63u) / 64u : KV == F16 ? (n + 1u) / 2u : n; }
uint words(uint n) { return KV == Q8_0 ? (n / 32u * 34u + 3u) / 4u : parts(n); }

// level rounds halves away from zero and bounds, as package quant does.
int level(float x) {
    float a = abs(x), r = floor(a);
    if (a - r >= 0.5) r = r + 1.0;
    if (isnan(x)) r = 0.0;
    r = min(r, 127.0);
    return x < 0.0 ? -int(r) : int(r);
}

// blocks writes two blocks, or one at the end of a row.
void blocks(bool key, uint from, uint left, uint to) {
    uint h[34];
    [[unroll]] for (uint b = 0u; b < 2u; b++) {
        float most = 0.0;
        uint n = min(left - min(left, 32u * b), 32u);
        for (uint i = 0u; i < n; i++) most = max(most, abs(key ? K[from + 32u * b + i] : V[from + 32u * b + i]));
        float d = most / 127.0, inverse = 0.0;
        if (d != 0.0) inverse = 1.0 / d;
        h[17u * b] = float_half(d);
        [[unroll]] for (uint i = 0u; i < 16u; i++) {
            h[17u * b + 1u + i] = 0u;
            if (n != 0u) {
                uint at = from + 32u * b + 2u * i;
                int q0 = level((key ? K[at] : V[at]) * inverse), q1 = level((key ? K[at + 1u] : V[at + 1u]) * inverse);
                h[17u * b + 1u + i] = uint(q0 & 255) | uint(q1 & 255) << 8;
            }
        }
    }
    [[unroll]] for (uint i = 0u; i < 17u; i++) {
        if (i < 9u || left > 32u) {
            uint x = h[2u * i] | h[2u * i + 1u] << 16;
            if (key) CK[to + i] = x;
            else CV[to + i] = x;
        }
    }
}

void main() {
    uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, kp = parts(k_width);
    if (i >= kp + parts(v_width)) return;
    uint to = R[row].z * ring + R[row].y % ring;
    bool key = i < kp;
    if (!key) i -= kp;
    uint width = key ? k_width : v_width, at = key ? k_at + row * k_stride : v_at + row * v_stride;
    to *= words(width);
    if (KV == Q8_0) {
        blocks(key, at + 64u * i, width - 64u * i, to + 17u * i);
        return;
    }
    uint x;
    if (KV == F16) {
        at += 2u * i;
        x = float_half(key ? K[at] : V[at]);
        if (2u * i + 1u < width) x |= float_half(key ? K[at + 1u] : V[at + 1u]) << 16;
    } else {
        x = floatBitsToUint(key ? K[at + i] : V[at + i]);
    }
    if (key) CK[to + i] = x;
    else CV[to + i] = x;
}
