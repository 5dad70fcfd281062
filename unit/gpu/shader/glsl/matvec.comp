#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Out[t][r] = W[r] · X[t] + bias[r] for few rows of activations.
//
// The sum has three levels, the same in every product kernel: a block of 32
// columns is a chain of fused multiply-adds, eight blocks are added in order to
// a group, the groups are added in order. Here a lane takes every LANES-th
// block of its rows, so neighbouring lanes read neighbouring memory.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Weights { uint W[]; };
layout(std430, binding = 1) readonly buffer Inputs { vec4 X[]; };
layout(std430, binding = 2) writeonly buffer Outputs { float Y[]; };
layout(std430, binding = 3) readonly buffer Vectors { float V[]; };

layout(push_constant) uniform Push {
    uint shift;     // byte of W at which row 0 begins
    uint row_bytes;
    uint cols;
    uint rows;      // outputs
    uint n;         // rows of activations
    uint x_at, x_stride;  // in vec4
    uint y_at, y_stride;  // in floats
    uint bias;      // index in V, or ~0
};

#include "float.glsl"
#include "weights.glsl"

layout(constant_id = 1) const uint LANES = 64; // 8, 16, 32 or 64
layout(constant_id = 2) const uint TOKENS = 1; // 1, 2 or 4
const uint ROWS = 4; // outputs of a lane

shared float part[64 * 4 * 4];

void main() {
    uint lane = gl_LocalInvocationID.x % LANES, team = gl_LocalInvocationID.x / LANES;
    uint first = (gl_WorkGroupID.x * (64u / LANES) + team) * ROWS;
    uint token = gl_WorkGroupID.y * TOKENS;
    uint blocks = (cols + 31u) / 32u;
    float total[2];
    total[0] = 0.0;
    total[1] = 0.0;
    for (uint from = 0u; from < blocks; from += LANES) {
        uint b = from + lane;
        for (uint r = 0u; r < ROWS; r++) {
            float sum[4];
            [[unroll]] for (uint t = 0u; t < TOKENS; t++) sum[t] = 0.0;
            if (b < blocks && first + r < rows) {
                float w[32];
                load32(shift + (first + r) * row_bytes, b, cols, w);
                bool whole = 32u * b + 32u <= cols;
                [[unroll]] for (uint t = 0u; t < TOKENS; t++) {
                    uint at = x_at + min(token + t, n - 1u) * x_stride + 8u * b;
                    if (whole) {
                        [[unroll]] for (uint j = 0u; j < 8u; j++) {
                            vec4 x = X[at + j];
                            sum[t] = fma(w[4u * j], x.x, sum[t]);
                            sum[t] = fma(w[4u * j + 1u], x.y, sum[t]);
                            sum[t] = fma(w[4u * j + 2u], x.z, sum[t]);
                            sum[t] = fma(w[4u * j + 3u], x.w, sum[t]);
                        }
                    } else {
                        [[unroll]] for (uint j = 0u; j < 32u; j++)
                            if (32u * b + j < cols) sum[t] = fma(w[j], X[at + j / 4u][j % 4u], sum[t]);
                    }
                }
            }
            [[unroll]] for (uint t = 0u; t < TOKENS; t++) part[((team * ROWS + r) * TOKENS + t) * LANES + lane] = sum[t];
        }
        barrier();
        // The team's outputs, one a lane, or two where lanes are few.
        [[unroll]] for (uint k = 0u; k < 2u; k++) {
            uint o = lane + k * LANES;
            if (o < ROWS * TOKENS) {
                uint at = (team * ROWS * TOKENS + o) * LANES;
                for (uint g = 0u; g < LANES / 8u; g++) {
                    float sum = 0.0;
                    [[unroll]] for (uint i = 0u; i < 8u; i++) sum = sum + part[at + 8u * g + i];
                    total[k] = total[k] + sum;
                }
            }
        }
        barrier();
    }
    [[unroll]] for (uint k = 0u; k < 2u; k++) {
        uint o = lane + k * LANES, r = first + o / TOKENS, t = token + o % TOKENS;
        if (o < ROWS * TOKENS && r < rows && t < n) {
            float y = total[k];
            if (bias != ~0u) y = y + V[bias + r];
            Y[y_at + t * y_stride + r] = y;
        }
    }
}
