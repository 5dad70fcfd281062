#pragma clang diagnostic ignored "-Wmissing-prototypes"

#include <metal_stdlib>
#include <simd/simd.h>

using namespace metal;

template<typename T>
[[clang::optnone]] T spvFMul(T l, T r)
{
    return fma(l, r, T(0));
}

template<typename T, int Cols, int Rows>
[[clang::optnone]] vec<T, Cols> spvFMulVectorMatrix(vec<T, Rows> v, matrix<T, Cols, Rows> m)
{
    vec<T, Cols> res = vec<T, Cols>(0);
    for (uint i = Rows; i > 0; --i)
    {
        vec<T, Cols> tmp(0);
        for (uint j = 0; j < Cols; ++j)
        {
            tmp[j] = m[j][i - 1];
        }
        res = fma(tmp, vec<T, Cols>(v[i - 1]), res);
    }
    return res;
}

template<typename T, int Cols, int Rows>
[[clang::optnone]] vec<T, Rows> spvFMulMatrixVector(matrix<T, Cols, Rows> m, vec<T, Cols> v)
{
    vec<T, Rows> res = vec<T, Rows>(0);
    for (uint i = Cols; i > 0; --i)
    {
        res = fma(m[i - 1], vec<T, Rows>(v[i - 1]), res);
    }
    return res;
}

template<typename T, int LCols, int LRows, int RCols, int RRows>
[[clang::optnone]] matrix<T, RCols, LRows> spvFMulMatrixMatrix(matrix<T, LCols, LRows> l, matrix<T, RCols, RRows> r)
{
    matrix<T, RCols, LRows> res;
    for (uint i = 0; i < RCols; i++)
    {
        vec<T, RCols> tmp(0);
        for (uint j = 0; j < LCols; j++)
        {
            tmp = fma(vec<T, RCols>(r[i][j]), l[j], tmp);
        }
        res[i] = tmp;
    }
    return res;
}

template<typename T>
[[clang::optnone]] T spvFAdd(T l, T r)
{
    return fma(T(1), l, r);
}

struct Push
{
    uint width;
    uint x_at;
    uint x_stride;
    uint y_at;
    uint y_stride;
    uint weight;
    float eps;
};

struct Inputs
{
    float X[1];
};

struct Vectors
{
    float V[1];
};

struct Outputs
{
    float Y[1];
};

constant uint3 gl_WorkGroupSize [[maybe_unused]] = uint3(64u, 1u, 1u);

kernel void main0(constant Push& _20 [[buffer(8)]], const device Inputs& _77 [[buffer(0)]], device Outputs& _202 [[buffer(1)]], const device Vectors& _191 [[buffer(2)]], uint3 gl_LocalInvocationID [[thread_position_in_threadgroup]], uint3 gl_WorkGroupID [[threadgroup_position_in_grid]])
{
    threadgroup float part[64];
    threadgroup float eighth[8];
    uint lane = gl_LocalInvocationID.x;
    uint x = (_20.x_at + (gl_WorkGroupID.y * _20.x_stride)) + (gl_WorkGroupID.x * _20.width);
    uint y = (_20.y_at + (gl_WorkGroupID.y * _20.y_stride)) + (gl_WorkGroupID.x * _20.width);
    float sum = 0.0;
    for (uint i = lane; i < _20.width; i += 64u)
    {
        sum = fma(_77.X[x + i], _77.X[x + i], sum);
    }
    part[lane] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < 8u)
    {
        sum = 0.0;
        for (uint i_1 = 0u; i_1 < 8u; i_1++)
        {
            sum = spvFAdd(sum, part[(8u * lane) + i_1]);
        }
        eighth[lane] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = 0.0;
    for (uint i_2 = 0u; i_2 < 8u; i_2++)
    {
        sum = spvFAdd(sum, eighth[i_2]);
    }
    float scale = 1.0 / sqrt(spvFAdd(sum / float(_20.width), _20.eps));
    for (uint i_3 = lane; i_3 < _20.width; i_3 += 64u)
    {
        float v = spvFMul(_77.X[x + i_3], scale);
        if (_20.weight != 4294967295u)
        {
            v = spvFMul(v, _191.V[_20.weight + i_3]);
        }
        _202.Y[y + i_3] = v;
    }
}

