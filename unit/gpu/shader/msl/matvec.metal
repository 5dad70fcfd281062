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

struct Weights
{
    uint W[1];
};

constant uint TYPE_tmp [[function_constant(0)]];
constant uint TYPE = is_function_constant_defined(TYPE_tmp) ? TYPE_tmp : 2u;
constant bool _280 = (TYPE == 0u);
constant bool _293 = (TYPE == 1u);
constant bool _397 = (TYPE == 1u);
constant bool _413 = (TYPE == 2u);
constant bool _415 = (TYPE == 3u);
constant bool _418 = (TYPE == 6u);
constant uint _421 = _418 ? 22u : 24u;
constant uint _422 = _415 ? 20u : _421;
constant uint _423 = _413 ? 18u : _422;
constant bool _432 = (TYPE == 3u);
constant bool _434 = (TYPE == 7u);
constant bool _435 = (_432 || _434);
constant bool _437 = (TYPE == 6u);
constant bool _438 = (TYPE == 7u);
constant bool _439 = (_437 || _438);
constant bool _877 = (TYPE == 12u);
constant uint _880 = _877 ? 144u : 176u;
constant bool _919 = (TYPE == 13u);
constant bool _1056 = (TYPE == 13u);
constant bool _1699 = (TYPE == 23u);
constant bool _1750 = (TYPE == 20u);
constant bool _1865 = (TYPE == 39u);
constant bool _1918 = (TYPE == 0u);
constant bool _1919 = (TYPE == 1u);
constant bool _1920 = (_1918 || _1919);
constant bool _1922 = (TYPE == 30u);
constant bool _1923 = (_1920 || _1922);
constant bool _1926 = (TYPE != 0u);
constant bool _1955 = (TYPE == 2u);
constant bool _1956 = (TYPE == 3u);
constant bool _1957 = (_1955 || _1956);
constant bool _1958 = (TYPE == 6u);
constant bool _1959 = (_1957 || _1958);
constant bool _1960 = (TYPE == 7u);
constant bool _1961 = (_1959 || _1960);
constant bool _1972 = (TYPE == 8u);
constant bool _1983 = (TYPE == 12u);
constant bool _1984 = (TYPE == 13u);
constant bool _1985 = (_1983 || _1984);
constant bool _1997 = (TYPE == 14u);
constant bool _2009 = (TYPE == 10u);
constant bool _2021 = (TYPE == 11u);
constant uint LANES_tmp [[function_constant(1)]];
constant uint LANES = is_function_constant_defined(LANES_tmp) ? LANES_tmp : 64u;
constant uint _2056 = (64u / LANES);
constant uint TOKENS_tmp [[function_constant(2)]];
constant uint TOKENS = is_function_constant_defined(TOKENS_tmp) ? TOKENS_tmp : 1u;

struct Push
{
    uint shift;
    uint row_bytes;
    uint cols;
    uint rows;
    uint n;
    uint x_at;
    uint x_stride;
    uint y_at;
    uint y_stride;
    uint bias0;
};

struct Inputs
{
    float4 X[1];
};

constant uint _2343 = (4u * TOKENS);
constant uint _2361 = (LANES / 8u);
constant uint _2421 = (4u * TOKENS);

struct Vectors
{
    float V[1];
};

struct Outputs
{
    float Y[1];
};

constant uint3 gl_WorkGroupSize [[maybe_unused]] = uint3(64u, 1u, 1u);

constant spvUnsafeArray<float, 16> _1884 = spvUnsafeArray<float, 16>({ 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0 });
constant spvUnsafeArray<float, 16> _1906 = spvUnsafeArray<float, 16>({ -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0 });

static inline __attribute__((always_inline))
float half_float(thread const uint& h)
{
    uint e = h & 31744u;
    uint m = h & 1023u;
    float f = as_type<float>(((h & 32767u) * 8192u) + 939524096u);
    if (e == 0u)
    {
        f = spvFMul(float(m), 5.9604644775390625e-08);
    }
    if (e == 31744u)
    {
        f = as_type<float>((m << uint(13)) | 2139095040u);
    }
    return as_type<float>(as_type<uint>(f) | ((h & 32768u) << uint(16)));
}

static inline __attribute__((always_inline))
void load_pairs(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint at_ = (row + (64u * b)) >> uint(2);
    uint s_ = 8u * ((row + (64u * b)) & 3u);
    uint lo_ = v_140.W[at_];
    spvUnsafeArray<uint, 16> q;
    for (uint i_ = 0u; i_ < 16u; i_++)
    {
        uint hi_ = 0u;
        if (((i_ + 1u) < 16u) || (s_ != 0u))
        {
            hi_ = v_140.W[(at_ + i_) + 1u];
        }
        q[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
        lo_ = hi_;
    }
    float _398;
    for (uint j = 0u; j < 32u; j++)
    {
        uint h = (q[j >> uint(1)] >> (16u * (j & 1u))) & 65535u;
        if (_397)
        {
            uint param = h;
            _398 = half_float(param);
        }
        else
        {
            _398 = as_type<float>(h << uint(16));
        }
        w[j] = _398;
    }
}

static inline __attribute__((always_inline))
uint byte_at(thread const uint& o, const device Weights& v_140)
{
    return (v_140.W[o >> uint(2)] >> (8u * (o & 3u))) & 255u;
}

static inline __attribute__((always_inline))
uint short_at(thread const uint& o, const device Weights& v_140)
{
    uint param = o;
    uint param_1 = o + 1u;
    return byte_at(param, v_140) | (byte_at(param_1, v_140) << uint(8));
}

static inline __attribute__((always_inline))
float half_at(thread const uint& o, const device Weights& v_140)
{
    uint _174;
    if ((o & 1u) != 0u)
    {
        uint param = o;
        _174 = short_at(param, v_140);
    }
    else
    {
        _174 = (v_140.W[o >> uint(2)] >> (8u * (o & 2u))) & 65535u;
    }
    uint param_1 = _174;
    return half_float(param_1);
}

static inline __attribute__((always_inline))
void load_plain(thread const uint& row, thread const uint& b, thread const uint& cols, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint n = min(32u, (cols - (32u * b)));
    for (uint j = 0u; j < 32u; j++)
    {
        w[j] = 0.0;
        if (j < n)
        {
            uint at = (32u * b) + j;
            if (_280)
            {
                w[j] = as_type<float>(v_140.W[(row >> uint(2)) + at]);
            }
            else
            {
                if (_293)
                {
                    uint param = row + (2u * at);
                    w[j] = half_at(param, v_140);
                }
                else
                {
                    uint param_1 = row + (2u * at);
                    w[j] = as_type<float>(short_at(param_1, v_140) << uint(16));
                }
            }
        }
    }
}

static inline __attribute__((always_inline))
void load_legacy(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint bytes = _423;
    uint o = row + (bytes * b);
    bool low = _435;
    bool five = _439;
    float m = 0.0;
    spvUnsafeArray<uint, 6> raw;
    float d;
    if (low)
    {
        if (five)
        {
            uint at_ = o >> uint(2);
            uint s_ = 8u * (o & 3u);
            uint lo_ = v_140.W[at_];
            for (uint i_ = 0u; i_ < 6u; i_++)
            {
                uint hi_ = 0u;
                if (((i_ + 1u) < 6u) || (s_ != 0u))
                {
                    hi_ = v_140.W[(at_ + i_) + 1u];
                }
                raw[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
                lo_ = hi_;
            }
        }
        else
        {
            uint at_1 = o >> uint(2);
            uint s_1 = 8u * (o & 3u);
            uint lo_1 = v_140.W[at_1];
            for (uint i_1 = 0u; i_1 < 5u; i_1++)
            {
                uint hi_1 = 0u;
                if (((i_1 + 1u) < 5u) || (s_1 != 0u))
                {
                    hi_1 = v_140.W[(at_1 + i_1) + 1u];
                }
                raw[i_1] = (lo_1 >> s_1) | ((hi_1 << (31u - s_1)) << uint(1));
                lo_1 = hi_1;
            }
        }
        uint param = raw[0] & 65535u;
        d = half_float(param);
        uint param_1 = raw[0] >> uint(16);
        m = half_float(param_1);
        for (uint i = 0u; i < 5u; i++)
        {
            raw[i] = raw[i + 1u];
        }
    }
    else
    {
        if (five)
        {
            bool odd_ = (o & 2u) != 0u;
            uint lo_2 = v_140.W[o >> uint(2)];
            uint _589;
            if (odd_)
            {
                _589 = lo_2 >> uint(16);
            }
            else
            {
                _589 = lo_2 & 65535u;
            }
            uint param_2 = _589;
            d = half_float(param_2);
            uint _618;
            for (uint i_2 = 0u; i_2 < 5u; i_2++)
            {
                uint hi_2 = v_140.W[((o >> uint(2)) + 1u) + i_2];
                if (odd_)
                {
                    _618 = hi_2;
                }
                else
                {
                    _618 = (lo_2 >> uint(16)) | (hi_2 << uint(16));
                }
                raw[i_2] = _618;
                lo_2 = hi_2;
            }
        }
        else
        {
            bool odd_1 = (o & 2u) != 0u;
            uint lo_3 = v_140.W[o >> uint(2)];
            uint _644;
            if (odd_1)
            {
                _644 = lo_3 >> uint(16);
            }
            else
            {
                _644 = lo_3 & 65535u;
            }
            uint param_3 = _644;
            d = half_float(param_3);
            uint _673;
            for (uint i_3 = 0u; i_3 < 4u; i_3++)
            {
                uint hi_3 = v_140.W[((o >> uint(2)) + 1u) + i_3];
                if (odd_1)
                {
                    _673 = hi_3;
                }
                else
                {
                    _673 = (lo_3 >> uint(16)) | (hi_3 << uint(16));
                }
                raw[i_3] = _673;
                lo_3 = hi_3;
            }
        }
    }
    uint h = raw[0];
    spvUnsafeArray<uint, 4> q;
    uint _704;
    for (uint i_4 = 0u; i_4 < 4u; i_4++)
    {
        if (five)
        {
            _704 = raw[i_4 + 1u];
        }
        else
        {
            _704 = raw[i_4];
        }
        q[i_4] = _704;
    }
    for (uint j = 0u; j < 32u; j++)
    {
        uint x = (q[(j & 15u) >> uint(2)] >> ((8u * ((j & 15u) & 3u)) + (4u * (j >> uint(4))))) & 15u;
        if (five)
        {
            x |= (((h >> j) & 1u) << uint(4));
        }
        if (low)
        {
            float y = spvFMul(d, float(x));
            float z = spvFAdd(y, m);
            w[j] = z;
        }
        else
        {
            float y_1 = spvFMul(d, float(int(x) - (five ? 16 : 8)));
            w[j] = y_1;
        }
    }
}

static inline __attribute__((always_inline))
void load_q8(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint o = row + (34u * b);
    bool odd_ = (o & 2u) != 0u;
    uint lo_ = v_140.W[o >> uint(2)];
    uint _800;
    if (odd_)
    {
        _800 = lo_ >> uint(16);
    }
    else
    {
        _800 = lo_ & 65535u;
    }
    uint param = _800;
    float d = half_float(param);
    spvUnsafeArray<uint, 8> q;
    uint _832;
    for (uint i_ = 0u; i_ < 8u; i_++)
    {
        uint hi_ = v_140.W[((o >> uint(2)) + 1u) + i_];
        if (odd_)
        {
            _832 = hi_;
        }
        else
        {
            _832 = (lo_ >> uint(16)) | (hi_ << uint(16));
        }
        q[i_] = _832;
        lo_ = hi_;
    }
    for (uint j = 0u; j < 32u; j++)
    {
        float y = spvFMul(d, float(extract_bits(int(q[j >> uint(2)]), uint(8 * int(j & 3u)), uint(8))));
        w[j] = y;
    }
}

static inline __attribute__((always_inline))
void scale_min(thread const uint& o, thread const uint& g, thread float& scale, thread float& low, const device Weights& v_140)
{
    if (g < 4u)
    {
        uint param = o + g;
        scale = float(byte_at(param, v_140) & 63u);
        uint param_1 = (o + g) + 4u;
        low = float(byte_at(param_1, v_140) & 63u);
    }
    else
    {
        uint param_2 = (o + g) + 4u;
        uint both = byte_at(param_2, v_140);
        uint param_3 = (o + g) - 4u;
        scale = float((both & 15u) | ((byte_at(param_3, v_140) >> uint(6)) << uint(4)));
        uint param_4 = o + g;
        low = float((both >> uint(4)) | ((byte_at(param_4, v_140) >> uint(6)) << uint(4)));
    }
}

static inline __attribute__((always_inline))
void load_q45k(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint o = row + (_880 * (b >> uint(3)));
    uint g = b & 7u;
    uint param = o;
    float d = half_at(param, v_140);
    uint param_1 = o + 2u;
    float dmin = half_at(param_1, v_140);
    uint param_2 = o + 4u;
    uint param_3 = g;
    float param_4;
    float param_5;
    scale_min(param_2, param_3, param_4, param_5, v_140);
    float scale = param_4;
    float low = param_5;
    float s = spvFMul(d, scale);
    float m = spvFMul(dmin, low);
    spvUnsafeArray<uint, 8> h;
    if (_919)
    {
        uint at_ = (o + 16u) >> uint(2);
        uint s_ = 8u * ((o + 16u) & 3u);
        uint lo_ = v_140.W[at_];
        for (uint i_ = 0u; i_ < 8u; i_++)
        {
            uint hi_ = 0u;
            if (((i_ + 1u) < 8u) || (s_ != 0u))
            {
                hi_ = v_140.W[(at_ + i_) + 1u];
            }
            h[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
            lo_ = hi_;
        }
        o += 32u;
    }
    uint at_1 = ((o + 16u) + (32u * (g >> uint(1)))) >> uint(2);
    uint s_1 = 8u * (((o + 16u) + (32u * (g >> uint(1)))) & 3u);
    uint lo_1 = v_140.W[at_1];
    spvUnsafeArray<uint, 8> q;
    for (uint i_1 = 0u; i_1 < 8u; i_1++)
    {
        uint hi_1 = 0u;
        if (((i_1 + 1u) < 8u) || (s_1 != 0u))
        {
            hi_1 = v_140.W[(at_1 + i_1) + 1u];
        }
        q[i_1] = (lo_1 >> s_1) | ((hi_1 << (31u - s_1)) << uint(1));
        lo_1 = hi_1;
    }
    for (uint j = 0u; j < 32u; j++)
    {
        uint x = (q[j >> uint(2)] >> ((8u * (j & 3u)) + (4u * (g & 1u)))) & 15u;
        if (_1056)
        {
            x |= (((h[j >> uint(2)] >> ((8u * (j & 3u)) + g)) & 1u) << uint(4));
        }
        float y = spvFMul(s, float(x));
        float z = spvFSub(y, m);
        w[j] = z;
    }
}

static inline __attribute__((always_inline))
void load_q6k(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint o = row + (210u * (b >> uint(3)));
    uint n = (b >> uint(2)) & 1u;
    uint r = b & 3u;
    uint param = o + 208u;
    float d = half_at(param, v_140);
    spvUnsafeArray<float, 2> s;
    for (uint i = 0u; i < 2u; i++)
    {
        uint param_1 = (((o + 192u) + (8u * n)) + (2u * r)) + i;
        s[i] = spvFMul(d, float(extract_bits(int(byte_at(param_1, v_140)), uint(0), uint(8))));
    }
    uint at_ = ((o + (64u * n)) + (32u * (r & 1u))) >> uint(2);
    uint s_ = 8u * (((o + (64u * n)) + (32u * (r & 1u))) & 3u);
    uint lo_ = v_140.W[at_];
    spvUnsafeArray<uint, 8> q;
    for (uint i_ = 0u; i_ < 8u; i_++)
    {
        uint hi_ = 0u;
        if (((i_ + 1u) < 8u) || (s_ != 0u))
        {
            hi_ = v_140.W[(at_ + i_) + 1u];
        }
        q[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
        lo_ = hi_;
    }
    uint at_1 = ((o + 128u) + (32u * n)) >> uint(2);
    uint s_1 = 8u * (((o + 128u) + (32u * n)) & 3u);
    uint lo_1 = v_140.W[at_1];
    spvUnsafeArray<uint, 8> h;
    for (uint i_1 = 0u; i_1 < 8u; i_1++)
    {
        uint hi_1 = 0u;
        if (((i_1 + 1u) < 8u) || (s_1 != 0u))
        {
            hi_1 = v_140.W[(at_1 + i_1) + 1u];
        }
        h[i_1] = (lo_1 >> s_1) | ((hi_1 << (31u - s_1)) << uint(1));
        lo_1 = hi_1;
    }
    for (uint j = 0u; j < 32u; j++)
    {
        uint x = ((q[j >> uint(2)] >> ((8u * (j & 3u)) + (4u * (r >> uint(1))))) & 15u) | (((h[j >> uint(2)] >> ((8u * (j & 3u)) + (2u * r))) & 3u) << uint(4));
        float y = spvFMul(s[j >> uint(4)], float(int(x) - 32));
        w[j] = y;
    }
}

static inline __attribute__((always_inline))
void load_q2k(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint o = row + (84u * (b >> uint(3)));
    uint g = b & 7u;
    uint param = o + 80u;
    float d = half_at(param, v_140);
    uint param_1 = o + 82u;
    float dmin = half_at(param_1, v_140);
    spvUnsafeArray<float, 2> s;
    spvUnsafeArray<float, 2> m;
    for (uint i = 0u; i < 2u; i++)
    {
        uint param_2 = (o + (2u * g)) + i;
        uint both = byte_at(param_2, v_140);
        s[i] = spvFMul(d, float(both & 15u));
        m[i] = spvFMul(dmin, float(both >> uint(4)));
    }
    uint at_ = ((o + 16u) + (32u * (g >> uint(2)))) >> uint(2);
    uint s_ = 8u * (((o + 16u) + (32u * (g >> uint(2)))) & 3u);
    uint lo_ = v_140.W[at_];
    spvUnsafeArray<uint, 8> q;
    for (uint i_ = 0u; i_ < 8u; i_++)
    {
        uint hi_ = 0u;
        if (((i_ + 1u) < 8u) || (s_ != 0u))
        {
            hi_ = v_140.W[(at_ + i_) + 1u];
        }
        q[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
        lo_ = hi_;
    }
    for (uint j = 0u; j < 32u; j++)
    {
        float y = spvFMul(s[j >> uint(4)], float((q[j >> uint(2)] >> ((8u * (j & 3u)) + (2u * (g & 3u)))) & 3u));
        float z = spvFSub(y, m[j >> uint(4)]);
        w[j] = z;
    }
}

static inline __attribute__((always_inline))
void load_q3k(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint o = row + (110u * (b >> uint(3)));
    uint g = b & 7u;
    uint param = o + 108u;
    float d = half_at(param, v_140);
    spvUnsafeArray<float, 2> s;
    for (uint i = 0u; i < 2u; i++)
    {
        uint k = (2u * g) + i;
        uint param_1 = (o + 96u) + (k & 7u);
        uint low = (byte_at(param_1, v_140) >> (4u * (k >> uint(3)))) & 15u;
        uint param_2 = (o + 104u) + (k & 3u);
        uint high = (byte_at(param_2, v_140) >> (2u * (k >> uint(2)))) & 3u;
        s[i] = spvFMul(d, float(int(low | (high << uint(4))) - 32));
    }
    uint at_ = ((o + 32u) + (32u * (g >> uint(2)))) >> uint(2);
    uint s_ = 8u * (((o + 32u) + (32u * (g >> uint(2)))) & 3u);
    uint lo_ = v_140.W[at_];
    spvUnsafeArray<uint, 8> q;
    for (uint i_ = 0u; i_ < 8u; i_++)
    {
        uint hi_ = 0u;
        if (((i_ + 1u) < 8u) || (s_ != 0u))
        {
            hi_ = v_140.W[(at_ + i_) + 1u];
        }
        q[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
        lo_ = hi_;
    }
    uint at_1 = o >> uint(2);
    uint s_1 = 8u * (o & 3u);
    uint lo_1 = v_140.W[at_1];
    spvUnsafeArray<uint, 8> h;
    for (uint i_1 = 0u; i_1 < 8u; i_1++)
    {
        uint hi_1 = 0u;
        if (((i_1 + 1u) < 8u) || (s_1 != 0u))
        {
            hi_1 = v_140.W[(at_1 + i_1) + 1u];
        }
        h[i_1] = (lo_1 >> s_1) | ((hi_1 << (31u - s_1)) << uint(1));
        lo_1 = hi_1;
    }
    for (uint j = 0u; j < 32u; j++)
    {
        uint x = ((q[j >> uint(2)] >> ((8u * (j & 3u)) + (2u * (g & 3u)))) & 3u) | (((h[j >> uint(2)] >> ((8u * (j & 3u)) + g)) & 1u) << uint(2));
        float y = spvFMul(s[j >> uint(4)], float(int(x) - 4));
        w[j] = y;
    }
}

static inline __attribute__((always_inline))
void load_levels(thread const uint& row, thread const uint& b, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    uint o;
    float d;
    if (_1699)
    {
        o = row + (136u * (b >> uint(3)));
        uint g = b & 7u;
        uint param = (o + 4u) + (g >> uint(1));
        uint param_1 = o + 2u;
        uint s = ((byte_at(param, v_140) >> (4u * (g & 1u))) & 15u) | (((short_at(param_1, v_140) >> (2u * g)) & 3u) << uint(4));
        uint param_2 = o;
        d = spvFMul(half_at(param_2, v_140), float(int(s) - 32));
        o += (8u + (16u * g));
    }
    else
    {
        if (_1750)
        {
            o = row + (18u * b);
            uint param_3 = o;
            d = half_at(param_3, v_140);
            o += 2u;
        }
        else
        {
            o = row + (17u * b);
            uint param_4 = o;
            uint e = byte_at(param_4, v_140);
            uint _1774;
            if (e < 2u)
            {
                _1774 = 2097152u << e;
            }
            else
            {
                _1774 = (e - 1u) << uint(23);
            }
            d = as_type<float>(_1774);
            o++;
        }
    }
    uint at_ = o >> uint(2);
    uint s_ = 8u * (o & 3u);
    uint lo_ = v_140.W[at_];
    spvUnsafeArray<uint, 4> q;
    for (uint i_ = 0u; i_ < 4u; i_++)
    {
        uint hi_ = 0u;
        if (((i_ + 1u) < 4u) || (s_ != 0u))
        {
            hi_ = v_140.W[(at_ + i_) + 1u];
        }
        q[i_] = (lo_ >> s_) | ((hi_ << (31u - s_)) << uint(1));
        lo_ = hi_;
    }
    float _1866;
    for (uint j = 0u; j < 32u; j++)
    {
        uint x = (q[(j & 15u) >> uint(2)] >> ((8u * ((j & 15u) & 3u)) + (4u * (j >> uint(4))))) & 15u;
        if (_1865)
        {
            _1866 = _1884[x];
        }
        else
        {
            _1866 = _1906[x];
        }
        float y = spvFMul(d, _1866);
        w[j] = y;
    }
}

static inline __attribute__((always_inline))
void load32(thread const uint& row, thread const uint& b, thread const uint& cols, thread spvUnsafeArray<float, 32>& w, const device Weights& v_140)
{
    if (_1923)
    {
        bool _1934;
        if (_1926)
        {
            _1934 = ((32u * b) + 32u) <= cols;
        }
        else
        {
            _1934 = _1926;
        }
        if (_1934)
        {
            uint param = row;
            uint param_1 = b;
            spvUnsafeArray<float, 32> param_2;
            load_pairs(param, param_1, param_2, v_140);
            w = param_2;
        }
        else
        {
            uint param_3 = row;
            uint param_4 = b;
            uint param_5 = cols;
            spvUnsafeArray<float, 32> param_6;
            load_plain(param_3, param_4, param_5, param_6, v_140);
            w = param_6;
        }
    }
    else
    {
        if (_1961)
        {
            uint param_7 = row;
            uint param_8 = b;
            spvUnsafeArray<float, 32> param_9;
            load_legacy(param_7, param_8, param_9, v_140);
            w = param_9;
        }
        else
        {
            if (_1972)
            {
                uint param_10 = row;
                uint param_11 = b;
                spvUnsafeArray<float, 32> param_12;
                load_q8(param_10, param_11, param_12, v_140);
                w = param_12;
            }
            else
            {
                if (_1985)
                {
                    uint param_13 = row;
                    uint param_14 = b;
                    spvUnsafeArray<float, 32> param_15;
                    load_q45k(param_13, param_14, param_15, v_140);
                    w = param_15;
                }
                else
                {
                    if (_1997)
                    {
                        uint param_16 = row;
                        uint param_17 = b;
                        spvUnsafeArray<float, 32> param_18;
                        load_q6k(param_16, param_17, param_18, v_140);
                        w = param_18;
                    }
                    else
                    {
                        if (_2009)
                        {
                            uint param_19 = row;
                            uint param_20 = b;
                            spvUnsafeArray<float, 32> param_21;
                            load_q2k(param_19, param_20, param_21, v_140);
                            w = param_21;
                        }
                        else
                        {
                            if (_2021)
                            {
                                uint param_22 = row;
                                uint param_23 = b;
                                spvUnsafeArray<float, 32> param_24;
                                load_q3k(param_22, param_23, param_24, v_140);
                                w = param_24;
                            }
                            else
                            {
                                uint param_25 = row;
                                uint param_26 = b;
                                spvUnsafeArray<float, 32> param_27;
                                load_levels(param_25, param_26, param_27, v_140);
                                w = param_27;
                            }
                        }
                    }
                }
            }
        }
    }
}

kernel void main0(const device Weights& v_140 [[buffer(0)]], constant Push& _2069 [[buffer(8)]], const device Inputs& _2197 [[buffer(1)]], device Outputs& _2465 [[buffer(2)]], const device Vectors& _2454 [[buffer(3)]], uint3 gl_LocalInvocationID [[thread_position_in_threadgroup]], uint3 gl_WorkGroupID [[threadgroup_position_in_grid]])
{
    threadgroup float part[1024];
    uint lane = gl_LocalInvocationID.x % LANES;
    uint team = gl_LocalInvocationID.x / LANES;
    uint first = ((gl_WorkGroupID.x * _2056) + team) * 4u;
    uint token = gl_WorkGroupID.y * TOKENS;
    uint blocks = (_2069.cols + 31u) / 32u;
    spvUnsafeArray<float, 2> total;
    total[0] = 0.0;
    total[1] = 0.0;
    spvUnsafeArray<float, 4> sum;
    spvUnsafeArray<float, 32> param_3;
    for (uint from = 0u; from < blocks; from += LANES)
    {
        uint b = from + lane;
        for (uint r = 0u; r < 4u; r++)
        {
            for (uint t = 0u; t < TOKENS; t++)
            {
                sum[t] = 0.0;
            }
            bool _2116 = b < blocks;
            bool _2125;
            if (_2116)
            {
                _2125 = (first + r) < _2069.rows;
            }
            else
            {
                _2125 = _2116;
            }
            if (_2125)
            {
                uint param = _2069.shift + ((first + r) * _2069.row_bytes);
                uint param_1 = b;
                uint param_2 = _2069.cols;
                load32(param, param_1, param_2, param_3, v_140);
                spvUnsafeArray<float, 32> w;
                w = param_3;
                bool whole = ((32u * b) + 32u) <= _2069.cols;
                for (uint t_1 = 0u; t_1 < TOKENS; t_1++)
                {
                    uint at = (_2069.x_at + (min((token + t_1), (_2069.n - 1u)) * _2069.x_stride)) + (8u * b);
                    if (whole)
                    {
                        for (uint j = 0u; j < 8u; j++)
                        {
                            float4 x = _2197.X[at + j];
                            sum[t_1] = fma(w[4u * j], x.x, sum[t_1]);
                            sum[t_1] = fma(w[(4u * j) + 1u], x.y, sum[t_1]);
                            sum[t_1] = fma(w[(4u * j) + 2u], x.z, sum[t_1]);
                            sum[t_1] = fma(w[(4u * j) + 3u], x.w, sum[t_1]);
                        }
                    }
                    else
                    {
                        for (uint j_1 = 0u; j_1 < 32u; j_1++)
                        {
                            if (((32u * b) + j_1) < _2069.cols)
                            {
                                sum[t_1] = fma(w[j_1], ((device float*)&_2197.X[at + (j_1 / 4u)])[j_1 % 4u], sum[t_1]);
                            }
                        }
                    }
                }
            }
            for (uint t_2 = 0u; t_2 < TOKENS; t_2++)
            {
                part[(((((team * 4u) + r) * TOKENS) + t_2) * LANES) + lane] = sum[t_2];
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0u; k < 2u; k++)
        {
            uint o = lane + (k * LANES);
            if (o < _2343)
            {
                uint at_1 = (((team * 4u) * TOKENS) + o) * LANES;
                for (uint g = 0u; g < _2361; g++)
                {
                    float sum_1 = 0.0;
                    for (uint i = 0u; i < 8u; i++)
                    {
                        sum_1 = spvFAdd(sum_1, part[(at_1 + (8u * g)) + i]);
                    }
                    total[k] = spvFAdd(total[k], sum_1);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint k_1 = 0u; k_1 < 2u; k_1++)
    {
        uint o_1 = lane + (k_1 * LANES);
        uint r_1 = first + (o_1 / TOKENS);
        uint t_3 = token + (o_1 % TOKENS);
        bool _2422 = o_1 < _2421;
        bool _2429;
        if (_2422)
        {
            _2429 = r_1 < _2069.rows;
        }
        else
        {
            _2429 = _2422;
        }
        bool _2436;
        if (_2429)
        {
            _2436 = t_3 < _2069.n;
        }
        else
        {
            _2436 = _2429;
        }
        if (_2436)
        {
            float y = total[k_1];
            if (_2069.bias0 != 4294967295u)
            {
                y = spvFAdd(y, _2454.V[_2069.bias0 + r_1]);
            }
            _2465.Y[(_2069.y_at + (t_3 * _2069.y_stride)) + r_1] = y;
        }
    }
}

