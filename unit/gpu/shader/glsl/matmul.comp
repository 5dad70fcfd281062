#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Out[t][r] = W[r] · X[t] + bias[r] for many rows of activations: a workgroup
// makes a tile of 32 outputs of 32 rows, from 32 columns of both at a time. The
// sums are those of matvec.comp, bit for bit.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Weights { uint W[]; };
layout(std430, binding = 1) readonly buffer Inputs { vec4 X[]; };
layout(std430, binding = 2) writeonly buffer Outputs { float Y[]; };
layout(std430, binding = 3) readonly buffer Vectors { float V[]; };

layout(push_constant) uniform Push { // as in matvec.comp
    uint shift, row_bytes, cols, rows, n, x_at, x_stride, y_at, y_stride, bias;
};

#include "float.glsl"
#include "weights.glsl"

const uint PITCH = 33; // of a column of the tile: neighbouring rows are in other banks
shared float ws[32 * 33];
shared float xs[32 * 33];

void main() {
    uint id = gl_LocalInvocationID.x, tx = id % 8u, ty = id / 8u;
    uint row = gl_WorkGroupID.x * 32u, token = gl_WorkGroupID.y * 32u;
    uint blocks = (cols + 31u) / 32u;
    float block[16], group[16], total[16];
    [[unroll]] for (uint i = 0u; i < 16u; i++) {
        group[i] = 0.0;
        total[i] = 0.0;
    }
    for (uint b = 0u; b < blocks; b++) {
        // Half of the invocations convert a row of weights each, the others
        // fetch a row of activations each.
        uint mine = id % 32u;
        if (id < 32u) {
            float w[32];
            load32(shift + min(row + mine, rows - 1u) * row_bytes, b, cols, w);
            [[unroll]] for (uint j = 0u; j < 32u; j++) ws[j * PITCH + mine] = w[j];
        } else {
            uint at = x_at + min(token + mine, n - 1u) * x_stride + 8u * b;
            if (32u * b + 32u <= cols) {
                [[unroll]] for (uint j = 0u; j < 8u; j++) {
                    vec4 x = X[at + j];
                    [[unroll]] for (uint k = 0u; k < 4u; k++) xs[(4u * j + k) * PITCH + mine] = x[k];
                }
            } else {
                [[unroll]] for (uint j = 0u; j < 32u; j++)
                    xs[j * PITCH + mine] = 32u * b + j < cols ? X[at + j / 4u][j % 4u] : 0.0;
            }
        }
        barrier();
        [[unroll]] for (uint i = 0u; i < 16u; i++) block[i] = 0.0;
        for (uint k = 0u; k < 32u; k++) {
            float w[4], x[4];
            [[unroll]] for (uint i = 0u; i < 4u; i++) {
                w[i] = ws[k * PITCH + tx + 8u * i];
                x[i] = xs[k * PITCH + ty + 8u * i];
            }
            [[unroll]] for (uint i = 0u; i < 16u; i++) block[i] = fma(w[i % 4u], x[i / 4u], block[i]);
        }
        bool last = b % 8u == 7u || b + 1u == blocks;
        [[unroll]] for (uint i = 0u; i < 16u; i++) {
            group[i] = group[i] + block[i];
            if (last) {
                total[i] = total[i] + group[i];
                group[i] = 0.0;
            }
        }
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < 16u; i++) {
        uint r = row + tx + 8u * (i % 4u), t = token + ty + 8u * (i / 4u);
        if (r < rows && t < n) {
            float y = total[i];
            if (bias != ~0u) y = y + V[bias + r];
            Y[y_at + t * y_stride + r] = y;
        }
    }
}
