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

struct Push
{
    uint q_at;
    uint q_stride;
    uint y_at;
    uint y_stride;
    uint k_stride;
    uint v_stride;
    uint ring;
    uint window;
    uint group;
    float scale;
};

constant uint KV_tmp [[function_constant(0)]];
constant uint KV = is_function_constant_defined(KV_tmp) ? KV_tmp : 0u;
constant bool _182 = (KV == 0u);

struct KeyCache
{
    uint K[1];
};

constant bool _199 = (KV == 1u);
constant bool _272 = (KV == 0u);

struct ValueCache
{
    uint V[1];
};

constant bool _286 = (KV == 1u);
constant uint HEADS_tmp [[function_constant(1)]];
constant uint HEADS = is_function_constant_defined(HEADS_tmp) ? HEADS_tmp : 1u;

struct Tiles
{
    uint2 T[1];
};

struct Rows
{
    uint4 R[1];
};

constant uint ROWS_tmp [[function_constant(2)]];
constant uint ROWS = is_function_constant_defined(ROWS_tmp) ? ROWS_tmp : 1u;
constant uint TILE = (HEADS * ROWS);
constant uint _462 = (TILE - 1u);
constant uint KEY_tmp [[function_constant(3)]];
constant uint KEY = is_function_constant_defined(KEY_tmp) ? KEY_tmp : 64u;
constant uint _474 = (TILE * KEY);

struct Queries
{
    float Q[1];
};

constant uint VALUE_tmp [[function_constant(4)]];
constant uint VALUE = is_function_constant_defined(VALUE_tmp) ? VALUE_tmp : 64u;
constant uint _538 = (VALUE + 63u);
constant uint COLUMNS = (_538 / 64u);
constant uint _540 = (TILE * COLUMNS);
constant uint _821 = (TILE * COLUMNS);
constant uint _837 = (TILE - 1u);

struct Outputs
{
    float Y[1];
};

constant uint3 gl_WorkGroupSize [[maybe_unused]] = uint3(64u, 1u, 1u);

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
float key_at(thread const uint& row, thread const uint& i, constant Push& v_175, const device KeyCache& v_188)
{
    uint o = row * v_175.k_stride;
    if (_182)
    {
        return as_type<float>(v_188.K[o + i]);
    }
    if (_199)
    {
        uint param = (v_188.K[o + (i / 2u)] >> (16u * (i & 1u))) & 65535u;
        return half_float(param);
    }
    uint b = (4u * o) + ((i / 32u) * 34u);
    uint q = (b + 2u) + (i % 32u);
    uint param_1 = (v_188.K[b >> uint(2)] >> (8u * (b & 2u))) & 65535u;
    float d = half_float(param_1);
    return spvFMul(d, float(extract_bits(int(v_188.K[q >> uint(2)]), uint(int(8u * (q & 3u))), uint(8))));
}

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
float value_at(thread const uint& row, thread const uint& i, constant Push& v_175, const device ValueCache& v_278)
{
    uint o = row * v_175.v_stride;
    if (_272)
    {
        return as_type<float>(v_278.V[o + i]);
    }
    if (_286)
    {
        uint param = (v_278.V[o + (i / 2u)] >> (16u * (i & 1u))) & 65535u;
        return half_float(param);
    }
    uint b = (4u * o) + ((i / 32u) * 34u);
    uint q = (b + 2u) + (i % 32u);
    uint param_1 = (v_278.V[b >> uint(2)] >> (8u * (b & 2u))) & 65535u;
    float d = half_float(param_1);
    return spvFMul(d, float(extract_bits(int(v_278.V[q >> uint(2)]), uint(int(8u * (q & 3u))), uint(8))));
}

kernel void main0(constant Push& v_175 [[buffer(8)]], const device Queries& _498 [[buffer(0)]], device Outputs& _1086 [[buffer(1)]], const device KeyCache& v_188 [[buffer(2)]], const device ValueCache& v_278 [[buffer(3)]], const device Rows& _395 [[buffer(4)]], const device Tiles& _374 [[buffer(5)]], uint3 gl_LocalInvocationID [[thread_position_in_threadgroup]], uint3 gl_WorkGroupID [[threadgroup_position_in_grid]])
{
    threadgroup float query[2048];
    threadgroup float score[512];
    threadgroup float rescale[8];
    threadgroup float largest[8];
    uint lane = gl_LocalInvocationID.x;
    uint parts = ((v_175.group + HEADS) - 1u) / HEADS;
    uint kv = gl_WorkGroupID.x / parts;
    uint head0 = (gl_WorkGroupID.x % parts) * HEADS;
    uint row0 = ((device uint*)&_374.T[gl_WorkGroupID.y])[0u];
    uint rows = ((device uint*)&_374.T[gl_WorkGroupID.y])[1u];
    uint heads = min(HEADS, (v_175.group - head0));
    uint slot = ((device uint*)&_395.R[row0])[2u] * v_175.ring;
    spvUnsafeArray<uint, 8> pos;
    spvUnsafeArray<uint, 8> from;
    uint _443;
    for (uint i = 0u; i < TILE; i++)
    {
        pos[i] = ((device uint*)&_395.R[row0 + min((i / HEADS), (rows - 1u))])[1u];
        bool _432 = v_175.window != 0u;
        bool _442;
        if (_432)
        {
            _442 = (pos[i] + 1u) > v_175.window;
        }
        else
        {
            _442 = _432;
        }
        if (_442)
        {
            _443 = (pos[i] + 1u) - v_175.window;
        }
        else
        {
            _443 = 0u;
        }
        from[i] = _443;
    }
    uint first = from[0];
    uint last = pos[_462];
    for (uint i_1 = lane; i_1 < _474; i_1 += 64u)
    {
        uint h = min(((i_1 / KEY) % HEADS), (heads - 1u));
        uint r = min(((i_1 / KEY) / HEADS), (rows - 1u));
        query[i_1] = _498.Q[((v_175.q_at + ((row0 + r) * v_175.q_stride)) + ((((kv * v_175.group) + head0) + h) * KEY)) + (i_1 % KEY)];
    }
    spvUnsafeArray<float, 32> acc;
    for (uint i_2 = 0u; i_2 < _540; i_2++)
    {
        acc[i_2] = 0.0;
    }
    float sum = 0.0;
    float best = as_type<float>(4286578688u);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint _556 = first / 64u;
    spvUnsafeArray<float, 8> s;
    float _666;
    float _729;
    float _776;
    float _886;
    for (uint piece = _556; piece <= (last / 64u); piece++)
    {
        uint p = (piece * 64u) + lane;
        for (uint i_3 = 0u; i_3 < TILE; i_3++)
        {
            s[i_3] = 0.0;
        }
        if ((p >= first) && (p <= last))
        {
            uint row = slot + (p % v_175.ring);
            for (uint d = 0u; d < KEY; d++)
            {
                uint param = row;
                uint param_1 = (kv * KEY) + d;
                float k = key_at(param, param_1, v_175, v_188);
                for (uint i_4 = 0u; i_4 < TILE; i_4++)
                {
                    s[i_4] = fma(query[(i_4 * KEY) + d], k, s[i_4]);
                }
            }
        }
        for (uint i_5 = 0u; i_5 < TILE; i_5++)
        {
            bool _657 = p >= from[i_5];
            bool _665;
            if (_657)
            {
                _665 = p <= pos[i_5];
            }
            else
            {
                _665 = _657;
            }
            if (_665)
            {
                _666 = spvFMul(s[i_5], v_175.scale);
            }
            else
            {
                _666 = as_type<float>(4286578688u);
            }
            s[i_5] = _666;
            score[(i_5 * 64u) + lane] = s[i_5];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane < TILE)
        {
            float m = best;
            for (uint j = 0u; j < 64u; j++)
            {
                m = fast::max(m, score[(lane * 64u) + j]);
            }
            float d_1 = spvFSub(best, m);
            if (best == m)
            {
                _729 = 1.0;
            }
            else
            {
                float param_2 = d_1;
                _729 = exponential(param_2);
            }
            rescale[lane] = _729;
            largest[lane] = m;
            best = m;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i_6 = 0u; i_6 < TILE; i_6++)
        {
            float d_2 = spvFSub(s[i_6], largest[i_6]);
            bool _767 = p >= from[i_6];
            bool _775;
            if (_767)
            {
                _775 = p <= pos[i_6];
            }
            else
            {
                _775 = _767;
            }
            if (_775)
            {
                float param_3 = d_2;
                _776 = exponential(param_3);
            }
            else
            {
                _776 = 0.0;
            }
            score[(i_6 * 64u) + lane] = _776;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane < TILE)
        {
            sum = spvFMul(sum, rescale[lane]);
            for (uint j_1 = 0u; j_1 < 64u; j_1++)
            {
                sum = spvFAdd(sum, score[(lane * 64u) + j_1]);
            }
        }
        for (uint i_7 = 0u; i_7 < _821; i_7++)
        {
            acc[i_7] = spvFMul(acc[i_7], rescale[i_7 / COLUMNS]);
        }
        bool _840 = (piece * 64u) >= from[_837];
        bool _849;
        if (_840)
        {
            _849 = ((piece * 64u) + 63u) <= pos[0];
        }
        else
        {
            _849 = _840;
        }
        if (_849)
        {
            for (uint j_2 = 0u; j_2 < 64u; j_2++)
            {
                uint row_1 = slot + (((piece * 64u) + j_2) % v_175.ring);
                for (uint c = 0u; c < COLUMNS; c++)
                {
                    uint d_3 = lane + (64u * c);
                    if (d_3 < VALUE)
                    {
                        uint param_4 = row_1;
                        uint param_5 = (kv * VALUE) + d_3;
                        _886 = value_at(param_4, param_5, v_175, v_278);
                    }
                    else
                    {
                        _886 = 0.0;
                    }
                    float v = _886;
                    for (uint i_8 = 0u; i_8 < TILE; i_8++)
                    {
                        acc[(i_8 * COLUMNS) + c] = fma(score[(i_8 * 64u) + j_2], v, acc[(i_8 * COLUMNS) + c]);
                    }
                }
            }
        }
        else
        {
            for (uint i_9 = 0u; i_9 < TILE; i_9++)
            {
                uint lo = max((piece * 64u), from[i_9]);
                uint hi = min(((piece * 64u) + 63u), pos[i_9]);
                for (uint q = lo; q <= hi; q++)
                {
                    uint row_2 = slot + (q % v_175.ring);
                    for (uint c_1 = 0u; c_1 < COLUMNS; c_1++)
                    {
                        uint d_4 = lane + (64u * c_1);
                        if (d_4 < VALUE)
                        {
                            uint param_6 = row_2;
                            uint param_7 = (kv * VALUE) + d_4;
                            acc[(i_9 * COLUMNS) + c_1] = fma(score[(i_9 * 64u) + (q % 64u)], value_at(param_6, param_7, v_175, v_278), acc[(i_9 * COLUMNS) + c_1]);
                        }
                    }
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (lane < TILE)
    {
        rescale[lane] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i_10 = 0u; i_10 < TILE; i_10++)
    {
        uint h_1 = i_10 % HEADS;
        uint r_1 = i_10 / HEADS;
        if ((h_1 < heads) && (r_1 < rows))
        {
            for (uint c_2 = 0u; c_2 < COLUMNS; c_2++)
            {
                uint d_5 = lane + (64u * c_2);
                if (d_5 < VALUE)
                {
                    float y = acc[(i_10 * COLUMNS) + c_2] / rescale[i_10];
                    _1086.Y[((v_175.y_at + ((row0 + r_1) * v_175.y_stride)) + ((((kv * v_175.group) + head0) + h_1) * VALUE)) + d_5] = y;
                }
            }
        }
    }
}

