#version 450
#extension GL_GOOGLE_include_directive : require
// Operations value by value.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer First { float A[]; };
layout(std430, binding = 1) readonly buffer Second { float B[]; };
layout(std430, binding = 2) writeonly buffer Outputs { float Y[]; };
layout(std430, binding = 3) readonly buffer Rows { uvec4 R[]; }; // token, position, slot, index

layout(push_constant) uniform Push {
    uint width, a_at, a_stride, b_at, b_stride, y_at, y_stride;
    float factor;
};

layout(constant_id = 0) const uint OP = 0;
const uint ADD = 0, SCALE = 1, SOFTCAP = 2, COPY = 3, NARROW = 4, GELU = 5, SILU = 6;

#include "float.glsl"

void main() {
    uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (i >= width) return;
    // Narrow takes the row of all rows that a wanted row is.
    float a = A[a_at + (OP == NARROW ? R[row].w : row) * a_stride + i];
    float y = a;
    if (OP == ADD) y = a + B[b_at + row * b_stride + i];
    else if (OP == SCALE) y = a * factor;
    else if (OP == SOFTCAP) y = factor * hyperbolic_tangent(a / factor);
    else if (OP == GELU) {
        // 0.5(1 + tanh z) is 1 / (1 + exp(-2z)).
        float z = a * a;
        z = fma(z * a, 0.044715, a);
        z = z * -1.5957691216057308;
        y = a / (1.0 + exponential(z)) * B[b_at + row * b_stride + i];
    } else if (OP == SILU) {
        y = a / (1.0 + exponential(-a)) * B[b_at + row * b_stride + i];
    }
    Y[y_at + row * y_stride + i] = y;
}
