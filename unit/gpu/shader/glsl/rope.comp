#version 450
// Rotates pairs of values. The angle of a position is that of its upper part
// (position / 256) plus that of its lower one, whose cosines and sines are
// tables made by the host in double precision: a device's own are far too
// coarse, and a table of all positions would be large.

layout(local_size_x = 64) in;

layout(std430, binding = 0) buffer Values { float X[]; };
layout(std430, binding = 1) readonly buffer Table { vec2 T[]; }; // cos, sin: 256 lower rows, then the upper ones
layout(std430, binding = 2) readonly buffer Rows { uvec4 R[]; }; // token, position, slot, index

layout(push_constant) uniform Push {
    uint x_at, x_stride, head, heads, pairs, table;
};

layout(constant_id = 0) const uint INTERLEAVED = 0;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= heads * pairs) return;
    uint row = gl_WorkGroupID.y, pair = i % pairs, pos = R[row].y;
    vec2 lo = T[table + (pos & 255u) * pairs + pair];
    vec2 hi = T[table + (256u + (pos >> 8)) * pairs + pair];
    float c = hi.x * lo.x - hi.y * lo.y;
    float s = hi.y * lo.x + hi.x * lo.y;
    uint at = x_at + row * x_stride + i / pairs * head;
    uint a = at + (INTERLEAVED != 0u ? 2u * pair : pair);
    uint b = INTERLEAVED != 0u ? a + 1u : a + head / 2u;
    float p = X[a], q = X[b];
    float u = p * c - q * s;
    float v = q * c + p * s;
    X[a] = u;
    X[b] = v;
}
