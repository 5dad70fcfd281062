#version 450
#extension GL_EXT_control_flow_attributes : require
// A workgroup normalises one group of columns of one row. Lane i adds up the
// squares of columns i, i+64, ..., eight lanes are added in order, and then the
// eight sums.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Inputs { float X[]; };
layout(std430, binding = 1) writeonly buffer Outputs { float Y[]; };
layout(std430, binding = 2) readonly buffer Vectors { float V[]; };

layout(push_constant) uniform Push {
    uint width; // of a group
    uint x_at, x_stride, y_at, y_stride;
    uint weight; // index in V, or ~0
    float eps;
};

shared float part[64];
shared float eighth[8];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint x = x_at + gl_WorkGroupID.y * x_stride + gl_WorkGroupID.x * width;
    uint y = y_at + gl_WorkGroupID.y * y_stride + gl_WorkGroupID.x * width;
    float sum = 0.0;
    for (uint i = lane; i < width; i += 64u) sum = fma(X[x + i], X[x + i], sum);
    part[lane] = sum;
    barrier();
    if (lane < 8u) {
        sum = 0.0;
        [[unroll]] for (uint i = 0u; i < 8u; i++) sum = sum + part[8u * lane + i];
        eighth[lane] = sum;
    }
    barrier();
    sum = 0.0;
    [[unroll]] for (uint i = 0u; i < 8u; i++) sum = sum + eighth[i];
    float scale = 1.0 / sqrt(sum / float(width) + eps);
    for (uint i = lane; i < width; i += 64u) {
        float v = X[x + i] * scale;
        if (weight != ~0u) v = v * V[weight + i];
        Y[y + i] = v;
    }
}
