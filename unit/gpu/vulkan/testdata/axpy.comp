#version 450
// y[i] += a·x[i], for the tests of package vulkan.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint step = 1;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform P { float a; uint n; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) y[i] += a * x[i] * float(step);
}
