#version 450
#extension GL_GOOGLE_include_directive : require
// Writes rows of keys and values into the rings of their slots. An invocation
// writes a word: one value, or two halves.

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

layout(constant_id = 0) const uint HALF = 0;

#include "float.glsl"

uint words(uint n) { return HALF != 0u ? (n + 1u) / 2u : n; }

void main() {
    uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, kw = words(k_width), vw = words(v_width);
    if (i >= kw + vw) return;
    uint to = R[row].z * ring + R[row].y % ring;
    bool key = i < kw;
    if (!key) i -= kw;
    uint width = key ? k_width : v_width, at = key ? k_at + row * k_stride : v_at + row * v_stride;
    uint x;
    if (HALF != 0u) {
        at += 2u * i;
        x = float_half(key ? K[at] : V[at]);
        if (2u * i + 1u < width) x |= float_half(key ? K[at + 1u] : V[at + 1u]) << 16;
    } else {
        x = floatBitsToUint(key ? K[at + i] : V[at + i]);
    }
    if (key) CK[to * kw + i] = x;
    else CV[to * vw + i] = x;
}
