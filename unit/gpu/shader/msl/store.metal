#pragma clang diagnostic ignored "-Wmissing-prototypes"
#pragma clang diagnostic ignored "-Wmissing-braces"

#include <metal_stdlib>
#include <simd/simd.h>

using namespace metal;

template<typename T, size_t Num>
struct spvUnsafeArray
{
    T elements[Num ? Num : 1];
    
    thread T& operator [] (size_t pos) thread
    {
        return elements[pos];
    }
    constexpr const thread T& operator [] (size_t pos) const thread
    {
        return elements[pos];
    }
    
    device T& operator [] (size_t pos) device
    {
        return elements[pos];
    }
    constexpr const device T& operator [] (size_t pos) const device
    {
        return elements[pos];
    }
    
    constexpr const constant T& operator [] (size_t pos) const constant
    {
        return elements[pos];
    }
    
    threadgroup T& operator [] (size_t pos) threadgroup
    {
        return elements[pos];
    }
    constexpr const threadgroup T& operator [] (size_t pos) const threadgroup
    {
        return elements[pos];
    }
};

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

constant uint KV_tmp [[function_constant(0)]];
constant uint KV = is_function_constant_defined(KV_tmp) ? KV_tmp : 0u;
constant bool _126 = (KV == 2u);
constant bool _136 = (KV == 1u);
constant bool _149 = (KV == 2u);

struct Keys
{
    float K[1];
};

struct Values
{
    float V[1];
};

struct KeyCache
{
    uint CK[1];
};

struct ValueCache
{
    uint CV[1];
};

struct Push
{
    uint k_at;
    uint k_stride;
    uint k_width;
    uint v_at;
    uint v_stride;
    uint v_width;
    uint ring;
};

struct Rows
{
    uint4 R[1];
};

constant bool _531 = (KV == 2u);
constant bool _553 = (KV == 1u);
constant uint3 gl_WorkGroupSize [[maybe_unused]] = uint3(64u, 1u, 1u);

static inline __attribute__((always_inline))
uint parts(thread const uint& n)
{
    uint _127;
    if (_126)
    {
        _127 = (n + 63u) / 64u;
    }
    else
    {
        uint _137;
        if (_136)
        {
            _137 = (n + 1u) / 2u;
        }
        else
        {
            _137 = n;
        }
        _127 = _137;
    }
    return _127;
}

static inline __attribute__((always_inline))
uint words(thread const uint& n)
{
    uint _150;
    if (_149)
    {
        _150 = (((n / 32u) * 34u) + 3u) / 4u;
    }
    else
    {
        uint param = n;
        _150 = parts(param);
    }
    return _150;
}

static inline __attribute__((always_inline))
uint float_half(thread const float& f)
{
    uint u = as_type<uint>(f);
    uint _sign = (u >> uint(16)) & 32768u;
    uint x = u & 2147483647u;
    if (x > 2139095040u)
    {
        return (_sign | 32256u) | ((x >> uint(13)) & 1023u);
    }
    if (x >= 1199566848u)
    {
        return _sign | 31744u;
    }
    uint shift = 13u;
    uint bias0 = 939524096u;
    if (x < 947912704u)
    {
        uint e = x >> uint(23);
        if (e < 102u)
        {
            return _sign;
        }
        shift = 126u - e;
        x = (x & 8388607u) | 8388608u;
        bias0 = 0u;
    }
    x -= bias0;
    uint up = ((1u << (shift - 1u)) - 1u) + ((x >> shift) & 1u);
    return _sign | ((x + up) >> shift);
}

static inline __attribute__((always_inline))
int level(thread const float& x)
{
    float a = abs(x);
    float r = floor(a);
    if (spvFSub(a, r) >= 0.5)
    {
        r = spvFAdd(r, 1.0);
    }
    if (isnan(x))
    {
        r = 0.0;
    }
    r = fast::min(r, 127.0);
    int _196;
    if (x < 0.0)
    {
        _196 = -int(r);
    }
    else
    {
        _196 = int(r);
    }
    return _196;
}

static inline __attribute__((always_inline))
void blocks(thread const bool& key, thread const uint& from, thread const uint& left, thread const uint& to, const device Keys& v_242, const device Values& v_257, device KeyCache& v_409, device ValueCache& v_420)
{
    float _236;
    spvUnsafeArray<uint, 34> h;
    float _321;
    float _338;
    for (uint b = 0u; b < 2u; b++)
    {
        float most = 0.0;
        uint n = min((left - min(left, (32u * b))), 32u);
        for (uint i = 0u; i < n; i++)
        {
            if (key)
            {
                _236 = v_242.K[(from + (32u * b)) + i];
            }
            else
            {
                _236 = v_257.V[(from + (32u * b)) + i];
            }
            most = fast::max(most, abs(_236));
        }
        float d = most / 127.0;
        float _inverse = 0.0;
        if (d != 0.0)
        {
            _inverse = 1.0 / d;
        }
        float param = d;
        h[17u * b] = float_half(param);
        for (uint i_1 = 0u; i_1 < 16u; i_1++)
        {
            h[((17u * b) + 1u) + i_1] = 0u;
            if (n != 0u)
            {
                uint at = (from + (32u * b)) + (2u * i_1);
                if (key)
                {
                    _321 = v_242.K[at];
                }
                else
                {
                    _321 = v_257.V[at];
                }
                float param_1 = spvFMul(_321, _inverse);
                int q0 = level(param_1);
                if (key)
                {
                    _338 = v_242.K[at + 1u];
                }
                else
                {
                    _338 = v_257.V[at + 1u];
                }
                float param_2 = spvFMul(_338, _inverse);
                int q1 = level(param_2);
                h[((17u * b) + 1u) + i_1] = uint(q0 & 255) | (uint(q1 & 255) << uint(8));
            }
        }
    }
    for (uint i_2 = 0u; i_2 < 17u; i_2++)
    {
        if ((i_2 < 9u) || (left > 32u))
        {
            uint x = h[2u * i_2] | (h[(2u * i_2) + 1u] << uint(16));
            if (key)
            {
                v_409.CK[to + i_2] = x;
            }
            else
            {
                v_420.CV[to + i_2] = x;
            }
        }
    }
}

kernel void main0(const device Keys& v_242 [[buffer(0)]], constant Push& _442 [[buffer(8)]], const device Values& v_257 [[buffer(1)]], device KeyCache& v_409 [[buffer(2)]], device ValueCache& v_420 [[buffer(3)]], const device Rows& _466 [[buffer(4)]], uint3 gl_GlobalInvocationID [[thread_position_in_grid]], uint3 gl_WorkGroupID [[threadgroup_position_in_grid]])
{
    uint i = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    uint param = _442.k_width;
    uint kp = parts(param);
    uint param_1 = _442.v_width;
    if (i >= (kp + parts(param_1)))
    {
        return;
    }
    uint to = (((device uint*)&_466.R[row])[2u] * _442.ring) + (((device uint*)&_466.R[row])[1u] % _442.ring);
    bool key = i < kp;
    if (!key)
    {
        i -= kp;
    }
    uint _494;
    if (key)
    {
        _494 = _442.k_width;
    }
    else
    {
        _494 = _442.v_width;
    }
    uint width = _494;
    uint _505;
    if (key)
    {
        _505 = _442.k_at + (row * _442.k_stride);
    }
    else
    {
        _505 = _442.v_at + (row * _442.v_stride);
    }
    uint at = _505;
    uint param_2 = width;
    to *= words(param_2);
    if (_531)
    {
        bool param_3 = key;
        uint param_4 = at + (64u * i);
        uint param_5 = width - (64u * i);
        uint param_6 = to + (17u * i);
        blocks(param_3, param_4, param_5, param_6, v_242, v_257, v_409, v_420);
        return;
    }
    uint x;
    if (_553)
    {
        at += (2u * i);
        float _562;
        if (key)
        {
            _562 = v_242.K[at];
        }
        else
        {
            _562 = v_257.V[at];
        }
        float param_7 = _562;
        x = float_half(param_7);
        if (((2u * i) + 1u) < width)
        {
            float _583;
            if (key)
            {
                _583 = v_242.K[at + 1u];
            }
            else
            {
                _583 = v_257.V[at + 1u];
            }
            float param_8 = _583;
            x |= (float_half(param_8) << uint(16));
        }
    }
    else
    {
        float _603;
        if (key)
        {
            _603 = v_242.K[at + i];
        }
        else
        {
            _603 = v_257.V[at + i];
        }
        x = as_type<uint>(_603);
    }
    if (key)
    {
        v_409.CK[to + i] = x;
    }
    else
    {
        v_420.CV[to + i] = x;
    }
}

