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

template<typename T>
[[clang::optnone]] T spvFSub(T l, T r)
{
    return fma(T(-1), r, l);
}

struct Push
{
    uint x_at;
    uint x_stride;
    uint head;
    uint heads;
    uint pairs;
    uint table;
};

struct Rows
{
    uint4 R[1];
};

struct Table
{
    float2 T[1];
};

constant uint INTERLEAVED_tmp [[function_constant(0)]];
constant uint INTERLEAVED = is_function_constant_defined(INTERLEAVED_tmp) ? INTERLEAVED_tmp : 0u;
constant bool _140 = (INTERLEAVED != 0u);
constant bool _152 = (INTERLEAVED != 0u);

struct Values
{
    float X[1];
};

constant uint3 gl_WorkGroupSize [[maybe_unused]] = uint3(64u, 1u, 1u);

kernel void main0(constant Push& _19 [[buffer(8)]], device Values& _169 [[buffer(0)]], const device Table& _62 [[buffer(1)]], const device Rows& _49 [[buffer(2)]], uint3 gl_GlobalInvocationID [[thread_position_in_grid]], uint3 gl_WorkGroupID [[threadgroup_position_in_grid]])
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= (_19.heads * _19.pairs))
    {
        return;
    }
    uint row = gl_WorkGroupID.y;
    uint pair = i % _19.pairs;
    uint pos = ((device uint*)&_49.R[row])[1u];
    float2 lo = _62.T[(_19.table + ((pos & 255u) * _19.pairs)) + pair];
    float2 hi = _62.T[(_19.table + ((256u + (pos >> uint(8))) * _19.pairs)) + pair];
    float c = spvFSub(spvFMul(hi.x, lo.x), spvFMul(hi.y, lo.y));
    float s = spvFAdd(spvFMul(hi.y, lo.x), spvFMul(hi.x, lo.y));
    uint at = (_19.x_at + (row * _19.x_stride)) + ((i / _19.pairs) * _19.head);
    uint _141;
    if (_140)
    {
        _141 = 2u * pair;
    }
    else
    {
        _141 = pair;
    }
    uint a = at + _141;
    uint _153;
    if (_152)
    {
        _153 = a + 1u;
    }
    else
    {
        _153 = a + (_19.head / 2u);
    }
    uint b = _153;
    float p = _169.X[a];
    float q = _169.X[b];
    float u = spvFSub(spvFMul(p, c), spvFMul(q, s));
    float v = spvFAdd(spvFMul(q, c), spvFMul(p, s));
    _169.X[a] = u;
    _169.X[b] = v;
}

