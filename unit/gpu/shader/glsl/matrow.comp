#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
// Out[t][r] = W[r] · X[t] + bias[r] for software drivers, where an invocation
// is a lane of a vector register and a load costs a step for each lane: an
// invocation has ROWS outputs of TOKENS rows, converts its weights once for all
// of them, and a subgroup loads each activation once. The sums are those of
// matvec.comp, bit for bit.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Weights { uint W[]; };
layout(std430, binding = 1) readonly buffer Inputs { float X[]; };
layout(std430, binding = 2) writeonly buffer Outputs { float Y[]; };
layout(std430, binding = 3) readonly buffer Vectors { float V[]; };

layout(push_constant) uniform Push { // as in matvec.comp
    uint shift, row_bytes, cols, rows, n, x_at, x_stride, y_at, y_stride, bias;
};

#include "float.glsl"
#include "weights.glsl"

layout(constant_id = 1) const uint TOKENS = 1; // at most 8
layout(constant_id = 2) const uint WIDTH = 4;  // of a subgroup, or less; it divides 32
layout(constant_id = 3) const uint ROWS = 1;   // outputs of an invocation, at most 4

// Loops run to constant bounds and break: Mesa 22.3 does not unroll them
// otherwise, and keeps the arrays in memory.
#define EACH(i, n, most) [[unroll]] for (uint i = 0u; i < most; i++) { if (i >= n) break;

void main() {
    uint row = gl_WorkGroupID.x * 64u * ROWS + gl_LocalInvocationID.x, token = gl_WorkGroupID.y * TOKENS;
    uint lane = gl_SubgroupInvocationID % WIDTH;
    uint blocks = (cols + 31u) / 32u;
    float group[32], total[32];
    [[unroll]] for (uint i = 0u; i < 32u; i++) {
        group[i] = 0.0;
        total[i] = 0.0;
    }
    for (uint b = 0u; b < blocks; b++) {
        float w[4][32];
        EACH(r, ROWS, 4u) load32(shift + min(row + 64u * r, rows - 1u) * row_bytes, b, cols, w[r]); }
        EACH(t, TOKENS, 8u)
            uint at = 4u * (x_at + min(token + t, n - 1u) * x_stride) + 32u * b;
            float sum[4] = float[](0.0, 0.0, 0.0, 0.0);
            [[unroll]] for (uint i = 0u; i < 32u; i += WIDTH) {
                float x = 0.0;
                if (32u * b + i + lane < cols) x = X[at + i + lane];
                [[unroll]] for (uint j = 0u; j < WIDTH; j++) {
                    float y = subgroupBroadcast(x, j);
                    EACH(r, ROWS, 4u) sum[r] = fma(w[r][i + j], y, sum[r]); }
                }
            }
            EACH(r, ROWS, 4u) group[4u * t + r] = group[4u * t + r] + sum[r]; }
        }
        if (b % 8u == 7u || b + 1u == blocks) {
            [[unroll]] for (uint i = 0u; i < 32u; i++) {
                total[i] = total[i] + group[i];
                group[i] = 0.0;
            }
        }
    }
    EACH(r, ROWS, 4u)
        uint o = row + 64u * r;
        if (o < rows) {
            EACH(t, TOKENS, 8u)
                if (token + t < n) {
                    float y = total[4u * t + r];
                    if (bias != ~0u) y = y + V[bias + o];
                    Y[y_at + (token + t) * y_stride + o] = y;
                }
            }
        }
    }
}
