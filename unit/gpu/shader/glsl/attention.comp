#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// softmax(scale · q·k) · v over the positions a query sees.
//
// A workgroup has a tile of queries that share a KV head: HEADS query heads of
// up to ROWS rows of one slot. It walks the cache in pieces of 64 positions
// that begin at multiples of 64, so what is added to what depends on the
// query's position alone. In a piece an invocation first computes the scores of
// one position, then it adds up its columns of the values in ascending order.
// Between pieces the sums are rescaled to the largest score so far (Milakov and
// Gimelshein 2018).

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Queries { float Q[]; };
layout(std430, binding = 1) writeonly buffer Outputs { float Y[]; };
layout(std430, binding = 2) readonly buffer KeyCache { uint K[]; };
layout(std430, binding = 3) readonly buffer ValueCache { uint V[]; };
layout(std430, binding = 4) readonly buffer Rows { uvec4 R[]; };  // token, position, slot, index
layout(std430, binding = 5) readonly buffer Tiles { uvec2 T[]; }; // first row, number of rows

layout(push_constant) uniform Push {
    uint q_at, q_stride, y_at, y_stride;
    uint k_stride, v_stride; // words of a cache row
    uint ring, window;       // window 0: all
    uint group;              // query heads of a KV head
    float scale;
};

layout(constant_id = 0) const uint KV = 0; // as unit.KV numbers the types
layout(constant_id = 1) const uint HEADS = 1;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint KEY = 64;   // values of a key
layout(constant_id = 4) const uint VALUE = 64; // values of a value

#include "float.glsl"

const uint F32 = 0, F16 = 1, Q8_0 = 2;
const uint TILE = HEADS * ROWS;           // at most 8
const uint COLUMNS = (VALUE + 63u) / 64u; // of an invocation; TILE · COLUMNS is at most 32

shared float query[2048]; // TILE · KEY is at most 2048
shared float score[8 * 64];
shared float rescale[8];
shared float largest[8];

// VALUE_AT is value i of row r of a cache of words X.
#define VALUE_AT(X, r, stride, i) \
    uint o = (r) * stride; \
    if (KV == F32) return uintBitsToFloat(X[o + i]); \
    if (KV == F16) return half_float(X[o + i / 2u] >> (16u * (i & 1u)) & 0xffffu); \
    uint b = 4u * o + i / 32u * 34u, q = b + 2u + i % 32u; \
    float d = half_float(X[b >> 2] >> (8u * (b & 2u)) & 0xffffu); \
    return d * float(bitfieldExtract(int(X[q >> 2]), int(8u * (q & 3u)), 8));

float key_at(uint row, uint i) { VALUE_AT(K, row, k_stride, i) }
float value_at(uint row, uint i) { VALUE_AT(V, row, v_stride, i) }

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint parts = (group + HEADS - 1u) / HEADS; // tiles that a group of heads is cut into
    uint kv = gl_WorkGroupID.x / parts, head0 = gl_WorkGroupID.x % parts * HEADS;
    uint row0 = T[gl_WorkGroupID.y].x, rows = T[gl_WorkGroupID.y].y;
    uint heads = min(HEADS, group - head0);
    uint slot = R[row0].z * ring;

    uint pos[8], from[8]; // the positions query i sees: [from, pos]
    [[unroll]] for (uint i = 0u; i < TILE; i++) {
        pos[i] = R[row0 + min(i / HEADS, rows - 1u)].y;
        from[i] = window != 0u && pos[i] + 1u > window ? pos[i] + 1u - window : 0u;
    }
    uint first = from[0], last = pos[TILE - 1u];
    for (uint i = lane; i < TILE * KEY; i += 64u) {
        uint h = min(i / KEY % HEADS, heads - 1u), r = min(i / KEY / HEADS, rows - 1u);
        query[i] = Q[q_at + (row0 + r) * q_stride + (kv * group + head0 + h) * KEY + i % KEY];
    }
    float acc[32];
    [[unroll]] for (uint i = 0u; i < TILE * COLUMNS; i++) acc[i] = 0.0;
    float sum = 0.0; // of query lane, for lane < TILE
    float best = uintBitsToFloat(0xff800000u);
    barrier();

    for (uint piece = first / 64u; piece <= last / 64u; piece++) {
        uint p = piece * 64u + lane;
        float s[8];
        [[unroll]] for (uint i = 0u; i < TILE; i++) s[i] = 0.0;
        if (p >= first && p <= last) {
            uint row = slot + p % ring;
            for (uint d = 0u; d < KEY; d++) {
                float k = key_at(row, kv * KEY + d);
                [[unroll]] for (uint i = 0u; i < TILE; i++) s[i] = fma(query[i * KEY + d], k, s[i]);
            }
        }
        [[unroll]] for (uint i = 0u; i < TILE; i++) {
            s[i] = p >= from[i] && p <= pos[i] ? s[i] * scale : uintBitsToFloat(0xff800000u);
            score[i * 64u + lane] = s[i];
        }
        barrier();
        if (lane < TILE) {
            float m = best;
            for (uint j = 0u; j < 64u; j++) m = max(m, score[lane * 64u + j]);
            float d = best - m;
            rescale[lane] = best == m ? 1.0 : exponential(d);
            largest[lane] = m;
            best = m;
        }
        barrier();
        [[unroll]] for (uint i = 0u; i < TILE; i++) {
            float d = s[i] - largest[i];
            score[i * 64u + lane] = p >= from[i] && p <= pos[i] ? exponential(d) : 0.0;
        }
        barrier();
        if (lane < TILE) {
            sum = sum * rescale[lane];
            for (uint j = 0u; j < 64u; j++) sum = sum + score[lane * 64u + j];
        }
        [[unroll]] for (uint i = 0u; i < TILE * COLUMNS; i++) acc[i] = acc[i] * rescale[i / COLUMNS];
        if (piece * 64u >= from[TILE - 1u] && piece * 64u + 63u <= pos[0]) {
            // All queries see all positions.
            for (uint j = 0u; j < 64u; j++) {
                uint row = slot + (piece * 64u + j) % ring;
                [[unroll]] for (uint c = 0u; c < COLUMNS; c++) {
                    uint d = lane + 64u * c;
                    float v = d < VALUE ? value_at(row, kv * VALUE + d) : 0.0;
                    [[unroll]] for (uint i = 0u; i < TILE; i++) acc[i * COLUMNS + c] = fma(score[i * 64u + j], v, acc[i * COLUMNS + c]);
                }
            }
        } else {
            [[unroll]] for (uint i = 0u; i < TILE; i++) {
                uint lo = max(piece * 64u, from[i]), hi = min(piece * 64u + 63u, pos[i]);
                for (uint q = lo; q <= hi; q++) {
                    uint row = slot + q % ring;
                    [[unroll]] for (uint c = 0u; c < COLUMNS; c++) {
                        uint d = lane + 64u * c;
                        if (d < VALUE) acc[i * COLUMNS + c] = fma(score[i * 64u + q % 64u], value_at(row, kv * VALUE + d), acc[i * COLUMNS + c]);
                    }
                }
            }
        }
        barrier();
    }
    if (lane < TILE) rescale[lane] = sum;
    barrier();
    [[unroll]] for (uint i = 0u; i < TILE; i++) {
        uint h = i % HEADS, r = i / HEADS;
        if (h < heads && r < rows) {
            [[unroll]] for (uint c = 0u; c < COLUMNS; c++) {
                uint d = lane + 64u * c;
                if (d < VALUE) {
                    float y = acc[i * COLUMNS + c] / rescale[i];
                    Y[y_at + (row0 + r) * y_stride + (kv * group + head0 + h) * VALUE + d] = y;
                }
            }
        }
    }
}
