// The constants of the vectorized functions of float and double. The polynomials are Chebyshev fits computed
// for this library over the intervals in the comments.
#pragma once

namespace cosmati::epilogue::vector_math {

template <class Real>
struct Constants;

template <>
struct Constants<float> {
  using Bits = unsigned;
  static constexpr Bits sign = 0x80000000u;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits bias = 127;
  static constexpr float log2_e = 1.44269504f;
  static constexpr float shift = 12582912.0f;  // 1.5 * 2^23: the last bits of a sum are the rounded integer
  // log(2) in two parts, so that n times the first has no error for any n of an exponent
  static constexpr float log2_high = 0.693359375f, log2_low = -2.12194440e-4f;
  static constexpr float exp_lowest = -115.0f,
                         exp_highest = 100.0f;           // beyond, 0 and infinity, also times 200
  static constexpr float exp_minus_one_lowest = -30.0f;  // below, -1
  static constexpr float largest_factor = 200.0f;
  static constexpr Bits even_bias = 1024u;  // even, and makes any n of exp positive
  // (exp(r) - 1 - r) / r^2 on |r| <= log(2) / 2
  static constexpr float exp_tail[] = {0.50000000143f,  0.16666666683f,  0.04166645681f,
                                       0.008333310024f, 0.001393454193f, 1.989198131e-4f};
  // (tanh(x) / x - 1) / x^2 on |x| <= 0.64
  static constexpr float tanh[] = {-0.3333332786f, 0.1333266348f, -0.05383514126f, 0.02092414818f,
                                   -0.005992961254f};
  // erf(x) / x - 1 on |x| <= 1
  static constexpr float erf[] = {0.1283791658f,   -0.3761262667f,    0.1128359472f,  -0.02685421201f,
                                  0.005189087423f, -0.0008016864287f, 7.875875063e-5f};
  // Phi(-t) = exp(-t^2 / 2) * R(t); t * R(t) = q * P(q - 7/16) with q = t / (t + offset), here on 0 <= t
  // <= 14.6
  static constexpr float normal_offset = 3.0f, normal_highest = 20.0f;
  static constexpr float normal[] = {0.7964337631f,   -1.137923639f,  0.986514495f,  -0.3279276125f,
                                     -0.2321976407f,  0.1885691194f,  0.1153988227f, -0.09315123652f,
                                     -0.09100344989f, 0.03273721075f, 0.05671585318f};
  static constexpr Bits half_mantissa = 0xfffff000u;  // keeps 12 bits: an exact square
};

template <>
struct Constants<double> {
  using Bits = unsigned long long;
  static constexpr Bits sign = Bits{1} << 63;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits bias = 1023;
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double log2_high = 6.93147180369123816490e-01, log2_low = 1.90821492927058770002e-10;
  static constexpr double exp_lowest = -760.0, exp_highest = 720.0;
  static constexpr double exp_minus_one_lowest = -60.0;
  static constexpr double largest_factor = 800.0;
  static constexpr Bits even_bias = 4096u;
  static constexpr double exp_tail[] = {
      0.50000000000000011,    0.16666666666666669,    0.04166666666662399,    0.0083333333333300511,
      0.0013888888917281794,  0.00019841269863105968, 2.4801521190217729e-05, 2.7557268378684192e-06,
      2.7620138719733994e-07, 2.5100424157005067e-08};
  static constexpr double tanh[] = {-0.33333333333333315,   0.13333333333322911,    -0.0539682539580498,
                                    0.021869488145370763,   -0.0088632278271554826, 0.0035920390439144402,
                                    -0.001455189036475708,  0.00058698974049914421, -0.00022977266440089898,
                                    7.8357116238915718e-05, -1.6592643143318556e-05};
  static constexpr double erf[] = {0.12837916709551256,     -0.37612638903183543,    0.11283791670945006,
                                   -0.02686617064323777,    0.0052239776071164225,   -0.00085483259753896918,
                                   0.00012055294904839707,  -1.4924736907419661e-05, 1.6447424703317362e-06,
                                   -1.6208483801871705e-07, 1.3720064546777686e-08,  -7.7958988270021425e-10};
  // here on 0 <= t <= 40
  static constexpr double normal_offset = 5.0, normal_highest = 40.0;
  static constexpr double normal[] = {
      0.86075986051883768,   -1.6105665056657954,  2.5191166396838609,     -3.2614357719129248,
      3.4125154323941218,    -2.7389679549594113,  1.4703051915519922,     -0.2405718313818383,
      -0.36729942687336742,  0.29186125045768074,  0.023955264989199559,   -0.1395326025439827,
      0.027662298581424438,  0.064240093966951572, -0.023364458036833499,  -0.0334299896056513,
      0.013746112025842562,  0.019862914492051274, -0.0064368689802212732, -0.011701660149768454,
      0.0018690489521158702, 0.0046267075621986};
  static constexpr Bits half_mantissa = ~Bits{0x7ffffff};  // 26 bits
};

}  // namespace cosmati::epilogue::vector_math
