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
    uint width;
    uint a_at;
    uint a_stride;
    uint b_at;
    uint b_stride;
    uint y_at;
    uint y_stride;
    float factor;
};

struct First
{
    float A[1];
};

constant uint OP_tmp [[function_constant(0)]];
constant uint OP = is_function_constant_defined(OP_tmp) ? OP_tmp : 0u;
constant bool _215 = (OP == 4u);

struct Rows
{
    uint4 R[1];
};

constant bool _244 = (OP == 0u);

struct Second
{
    float B[1];
};

constant bool _267 = (OP == 1u);
constant bool _278 = (OP == 2u);
constant bool _292 = (OP == 5u);
constant bool _328 = (OP == 6u);

struct Outputs
{
    float Y[1];
};

constant uint3 gl_WorkGroupSize [[maybe_unused]] = uint3(64u, 1u, 1u);

static inline __attribute__((always_inline))
float exponential(thread const float& x)
{
    if (!(x >= (-87.3000030517578125)))
    {
        return isnan(x) ? x : 0.0;
    }
    if (x > 88.6999969482421875)
    {
        return as_type<float>(2139095040u);
    }
    float n = rint(spvFMul(x, 1.44269502162933349609375));
    float r = fma(n, -0.693359375, x);
    r = fma(n, 0.00021219444170128554105758666992188, r);
    float p = 0.00019875691214110702276229858398438;
    p = fma(p, r, 0.00139819993637502193450927734375);
    p = fma(p, r, 0.008333452045917510986328125);
    p = fma(p, r, 0.0416657961905002593994140625);
    p = fma(p, r, 0.1666666567325592041015625);
    p = fma(p, r, 0.5);
    float y = fma(p, spvFMul(r, r), r);
    y = spvFAdd(y, 1.0);
    int k = int(n);
    int a = k >> 1;
    float z = spvFMul(y, as_type<float>(uint(a + 127) << uint(23)));
    z = spvFMul(z, as_type<float>(uint((k - a) + 127) << uint(23)));
    return z;
}

static inline __attribute__((always_inline))
float hyperbolic_tangent(thread const float& x)
{
    float a = abs(x);
    if (a < 0.625)
    {
        float z = spvFMul(x, x);
        float p = -0.005704988725483417510986328125;
        p = fma(p, z, 0.0206390880048274993896484375);
        p = fma(p, z, -0.0537397153675556182861328125);
        p = fma(p, z, 0.13331441581249237060546875);
        p = fma(p, z, -0.3333328068256378173828125);
        float y = fma(spvFMul(p, z), x, x);
        return y;
    }
    float param = spvFMul(2.0, a);
    float e = exponential(param);
    float y_1 = spvFSub(1.0, 2.0 / spvFAdd(1.0, e));
    float _166;
    if (x < 0.0)
    {
        _166 = -y_1;
    }
    else
    {
        _166 = isnan(x) ? x : y_1;
    }
    return _166;
}

kernel void main0(constant Push& _197 [[buffer(8)]], const device First& _210 [[buffer(0)]], const device Second& _251 [[buffer(1)]], device Outputs& _353 [[buffer(2)]], const device Rows& _223 [[buffer(3)]], uint3 gl_GlobalInvocationID [[thread_position_in_grid]], uint3 gl_WorkGroupID [[threadgroup_position_in_grid]])
{
    uint i = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (i >= _197.width)
    {
        return;
    }
    uint _216;
    if (_215)
    {
        _216 = ((device uint*)&_223.R[row])[3u];
    }
    else
    {
        _216 = row;
    }
    float a = _210.A[(_197.a_at + (_216 * _197.a_stride)) + i];
    float y = a;
    if (_244)
    {
        y = spvFAdd(a, _251.B[(_197.b_at + (row * _197.b_stride)) + i]);
    }
    else
    {
        if (_267)
        {
            y = spvFMul(a, _197.factor);
        }
        else
        {
            if (_278)
            {
                float param = a / _197.factor;
                y = spvFMul(_197.factor, hyperbolic_tangent(param));
            }
            else
            {
                if (_292)
                {
                    float z = spvFMul(a, a);
                    z = fma(spvFMul(z, a), 0.0447149984538555145263671875, a);
                    z = spvFMul(z, -1.5957691669464111328125);
                    float param_1 = z;
                    y = spvFMul(a / spvFAdd(1.0, exponential(param_1)), _251.B[(_197.b_at + (row * _197.b_stride)) + i]);
                }
                else
                {
                    if (_328)
                    {
                        float param_2 = -a;
                        y = spvFMul(a / spvFAdd(1.0, exponential(param_2)), _251.B[(_197.b_at + (row * _197.b_stride)) + i]);
                    }
                }
            }
        }
    }
    _353.Y[(_197.y_at + (row * _197.y_stride)) + i] = y;
}

