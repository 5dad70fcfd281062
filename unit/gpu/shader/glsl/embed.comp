#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Out[t] = row t of W · scale. The host has gathered the rows of the table that
// the tokens name; an invocation converts 32 columns.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Rows { uint W[]; };
layout(std430, binding = 1) writeonly buffer Outputs { float Y[]; };

layout(push_constant) uniform Push {
    uint row_bytes; // a multiple of 4
    uint cols, n, y_at, y_stride;
    float scale;
};

#include "float.glsl"
#include "weights.glsl"

void main() {
    uint blocks = (cols + 31u) / 32u, b = gl_GlobalInvocationID.x, t = gl_WorkGroupID.y;
    if (b >= blocks) return;
    float w[32];
    load32(t * row_bytes, b, cols, w);
    [[unroll]] for (uint j = 0u; j < 32u; j++) {
        if (32u * b + j < cols) {
            float y = w[j] * scale;
            Y[y_at + t * y_stride + 32u * b + j] = y;
        }
    }
}
