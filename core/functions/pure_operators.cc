#include "core/functions/pure_operators.h"

#include <algorithm>
#include <array>
#include <map>

// Left out everywhere: names that begin with an underscore, and namespaces but aten, for they are
// the insides of others and trust their callers; overloads with `out` and operators that change an
// argument; names of dimensions; the operators of backward passes, of which gradients need none;
// what is for one device's library (cudnn, miopen, mkldnn) or for one number format (quantize,
// fake_quantize). Left out in particular:
//
// - empty, empty_like, new_empty, resize, and others that show memory that was never written;
// - as_strided, set, view.dtype, unfold_copy, and whatever takes sizes and strides as they are
//   given;
// - from_file, save, and whatever touches anything but memory;
// - sparse_coo_tensor, sparse_csr_tensor, … and embedding_renorm, ctc_loss, segment_reduce,
//   max_unpool, lu_solve, ldl_solve, lu_unpack, ormqr, fractional_max_pool, put, histogramdd,
//   embedding_bag, which trust the indices, offsets and pivots in their tensors;
// - lstm, gru, rnn_tanh, rnn_relu, which trust the sizes of their lists of weights: their cells are
//   in;
// - scaled_dot_product_attention, which reads as many keys as there are values, and divides by the
//   number of key heads;
// - histc, which writes behind its last bin where a number of bins is none of its type;
// - lcm, of which the lowest whole numbers end the process;
// - grid_sampler, which shows memory that was never written for a mode that does not exist;
// - polynomials of any degree, combinations and poisson, whose time or memory a number alone sets;
// - item, size, stride, is_leaf, …: facts that the caller has, or that are of no use elsewhere;
// - the parts of other operators: slow_conv, thnn_conv, nll_loss_forward, native_layer_norm, ….
namespace rehearsal {
namespace {

constexpr std::array<OperatorFamily, 17> kFamilies = {{
    {"one number at a time",
     "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan "
     "atanh bitwise_not ceil conj conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 "
     "expm1 fix floor frac i0 imag isfinite isinf isnan isneginf isposinf isreal lgamma log log10 "
     "log1p log2 logical_not logit nan_to_num neg negative positive rad2deg real reciprocal "
     "resolve_conj resolve_neg round round.decimals rsqrt sgn sign signbit sin sinc sinh sqrt "
     "square tan tanh trunc special_bessel_j0 special_bessel_j1 special_bessel_y0 "
     "special_bessel_y1 special_digamma special_entr special_erf special_erfc special_erfcx "
     "special_erfinv special_exp2 special_expit special_expm1 special_gammaln special_i0 "
     "special_i0e special_i1 special_i1e special_log1p special_log_ndtr special_logit special_ndtr "
     "special_ndtri special_psi special_round special_sinc",
     OperatorWork::by_element},
    {"two and three numbers at a time",
     "add.Tensor add.Scalar addcdiv addcmul arctan2 atan2 bitwise_and.Tensor bitwise_and.Scalar "
     "bitwise_or.Tensor bitwise_or.Scalar bitwise_xor.Tensor bitwise_xor.Scalar "
     "bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor "
     "bitwise_right_shift.Tensor_Scalar clamp clamp.Tensor clamp_max clamp_max.Tensor clamp_min "
     "clamp_min.Tensor clip clip.Tensor complex copysign.Tensor copysign.Scalar div.Tensor "
     "div.Scalar div.Tensor_mode div.Scalar_mode divide.Tensor divide.Scalar divide.Tensor_mode "
     "divide.Scalar_mode float_power.Tensor_Tensor float_power.Tensor_Scalar float_power.Scalar "
     "floor_divide floor_divide.Scalar fmax fmin fmod.Tensor fmod.Scalar gcd heaviside hypot "
     "igamma "
     "igammac ldexp.Tensor lerp.Scalar lerp.Tensor logaddexp logaddexp2 logical_and logical_or "
     "logical_xor maximum minimum mul.Tensor mul.Scalar multiply.Tensor multiply.Scalar nextafter "
     "polar pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar remainder.Tensor remainder.Scalar "
     "remainder.Scalar_Tensor rsub.Tensor rsub.Scalar sub.Tensor sub.Scalar subtract.Tensor "
     "subtract.Scalar true_divide.Tensor true_divide.Scalar where.self where.ScalarOther "
     "where.ScalarSelf where.Scalar xlogy.Tensor xlogy.Scalar_Other xlogy.Scalar_Self "
     "special_xlog1py special_xlogy special_zeta",
     OperatorWork::by_element},
    {"comparison",
     "allclose eq.Tensor eq.Scalar equal ge.Tensor ge.Scalar greater.Tensor greater.Scalar "
     "greater_equal.Tensor greater_equal.Scalar gt.Tensor gt.Scalar isclose isin.Tensor_Tensor "
     "isin.Tensor_Scalar isin.Scalar_Tensor le.Tensor le.Scalar less.Tensor less.Scalar "
     "less_equal.Tensor less_equal.Scalar lt.Tensor lt.Scalar ne.Tensor ne.Scalar not_equal.Tensor "
     "not_equal.Scalar",
     OperatorWork::by_element},
    {"reductions",
     "all all.dim all.dims amax amin aminmax any any.dim any.dims argmax argmin count_nonzero "
     "count_nonzero.dim_IntList max max.dim max.other mean mean.dim min min.dim min.other "
     "nanmean nansum prod prod.dim_int std std.dim std.correction sum sum.dim_IntList var "
     "var.dim var.correction",
     OperatorWork::by_element},
    {"over dimensions",
     "cummax cummin cumprod cumsum diff dist frobenius_norm.dim kthvalue logcumsumexp "
     "logsumexp median median.dim mode nanmedian nanmedian.dim nanquantile nanquantile.scalar "
     "norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype "
     "nuclear_norm nuclear_norm.dim quantile quantile.scalar renorm std_mean std_mean.dim "
     "std_mean.correction sum_to_size trapezoid.x trapezoid.dx trapz.x trapz.dx var_mean "
     "var_mean.dim var_mean.correction special_logsumexp"},
    {"order and search",
     "argsort argsort.stable argwhere bincount bucketize.Tensor bucketize.Scalar msort "
     "nonzero nonzero_numpy searchsorted.Tensor searchsorted.Scalar sort sort.stable topk "
     "unique_consecutive unique_dim unique_dim_consecutive where"},
    {"shapes",
     "adjoint atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to chunk clone "
     "contiguous detach diag diag_embed diagflat diagonal dsplit.int dsplit.array expand expand_as "
     "flatten.using_ints flip fliplr flipud hsplit.int hsplit.array mH mT matrix_H moveaxis.int "
     "moveaxis.intlist movedim.int movedim.intlist narrow numpy_T permute ravel repeat "
     "repeat_interleave.self_int reshape reshape_as roll rot90 select.int slice.Tensor "
     "split.Tensor split.sizes split_with_sizes squeeze squeeze.dim squeeze.dims swapaxes swapdims "
     "t tensor_split.sections tensor_split.indices tile transpose.int tril triu unbind.int "
     "unflatten.int unfold unsafe_chunk unsafe_split.Tensor unsqueeze view view_as "
     "view_as_complex view_as_real vsplit.int vsplit.array"},
    {"joining",
     "block_diag cartesian_prod cat column_stack concat concatenate dstack hstack meshgrid "
     "meshgrid.indexing pad_sequence row_stack stack vstack"},
    {"indices, which they check",
     "diagonal_scatter gather index.Tensor index_add index_fill.int_Scalar index_fill.int_Tensor "
     "index_put index_reduce index_select masked_fill.Scalar masked_fill.Tensor masked_scatter "
     "masked_select scatter.src scatter.value scatter.reduce scatter.value_reduce scatter_add "
     "scatter_reduce.two select_scatter slice_scatter take take_along_dim"},
    {"making",
     "arange arange.start arange.start_step bartlett_window bartlett_window.periodic "
     "blackman_window blackman_window.periodic eye eye.m full full_like hamming_window "
     "hamming_window.periodic hann_window hann_window.periodic kaiser_window "
     "kaiser_window.periodic linspace logspace new_full new_ones new_zeros one_hot ones ones_like "
     "scalar_tensor tril_indices triu_indices vander zeros zeros_like"},
    {"drawing, from the callee's random numbers",
     "alpha_dropout bernoulli bernoulli.p dropout feature_alpha_dropout feature_dropout "
     "multinomial normal.Tensor_float normal.float_Tensor normal.Tensor_Tensor rand rand_like "
     "randint randint.low randint_like randint_like.low_dtype randn randn_like randperm rrelu"},
    {"types and layouts",
     "coalesce to.dtype to.other to.dtype_layout to_dense to_sparse to_sparse.sparse_dim "
     "to_sparse_csr type_as"},
    {"products",
     "addbmm addmm addmv addr baddbmm bilinear bmm chain_matmul cross dot einsum ger inner kron "
     "linalg_cross linalg_matmul linalg_multi_dot linalg_vecdot linear matmul mm mv outer "
     "tensordot "
     "trace vdot"},
    {"linear algebra",
     "cholesky cholesky_inverse cholesky_solve corrcoef cov det inverse linalg_cholesky "
     "linalg_cholesky_ex linalg_cond linalg_cond.p_str linalg_det linalg_diagonal linalg_eig "
     "linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lstsq linalg_lu "
     "linalg_matrix_exp linalg_matrix_norm linalg_matrix_norm.str_ord linalg_matrix_power "
     "linalg_matrix_rank linalg_norm linalg_norm.ord_str linalg_pinv linalg_qr linalg_slogdet "
     "linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals "
     "linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vector_norm logdet matrix_exp "
     "matrix_power pinverse qr slogdet svd"},
    {"Fourier transforms",
     "fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_ifft fft_ifft2 fft_ifftn "
     "fft_ifftshift fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq "
     "fft_rfftn istft stft stft.center"},
    {"layers",
     "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
     "adaptive_max_pool2d adaptive_max_pool3d affine_grid_generator avg_pool1d avg_pool2d "
     "avg_pool3d batch_norm celu channel_shuffle constant_pad_nd conv1d conv1d.padding conv2d "
     "conv2d.padding conv3d conv3d.padding conv_tbc conv_transpose1d conv_transpose2d.input "
     "conv_transpose3d.input convolution elu embedding gelu glu group_norm gru_cell hardshrink "
     "hardsigmoid hardswish hardtanh instance_norm layer_norm leaky_relu log_sigmoid "
     "log_softmax.int lstm_cell max_pool1d max_pool2d max_pool3d mish pad pixel_shuffle "
     "pixel_unshuffle prelu reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 "
     "replication_pad1d replication_pad2d replication_pad3d rms_norm rnn_relu_cell rnn_tanh_cell "
     "selu sigmoid silu softmax.int softplus softshrink threshold "
     "upsample_bicubic2d.vec upsample_bilinear2d.vec upsample_linear1d.vec upsample_nearest1d.vec "
     "upsample_nearest2d.vec upsample_nearest3d.vec upsample_trilinear3d.vec im2col col2im"},
    {"losses and distances",
     "binary_cross_entropy_with_logits cdist cosine_embedding_loss "
     "cosine_similarity cross_entropy_loss hinge_embedding_loss huber_loss kl_div l1_loss "
     "margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss_nd "
     "pairwise_distance pdist poisson_nll_loss smooth_l1_loss "
     "triplet_margin_loss"},
}};

constexpr std::string_view kPrefix = "aten::";

// The work of each, by its name without prefix.
std::map<std::string_view, OperatorWork> all_works() {
  std::map<std::string_view, OperatorWork> works;
  for (const OperatorFamily& family : kFamilies) {
    std::string_view rest = family.names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      if (!name.empty()) works.emplace(name, family.work);
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
  return works;
}

const std::map<std::string_view, OperatorWork>& works() {
  static const std::map<std::string_view, OperatorWork> all = all_works();
  return all;
}

}  // namespace

std::span<const OperatorFamily> pure_operators() { return kFamilies; }

bool is_pure_operator(std::string_view full_name) {
  return full_name.starts_with(kPrefix) && works().contains(full_name.substr(kPrefix.size()));
}

bool works_by_element(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const bool is_whole_name = name.find('.') != std::string_view::npos;
  bool found = false;
  for (auto at = works().lower_bound(name); at != works().end(); ++at) {
    const auto& [known, work] = *at;
    if (!known.starts_with(name)) break;
    const std::string_view rest = known.substr(name.size());
    const bool is_meant = rest.empty() || (!is_whole_name && rest.front() == '.');
    if (is_meant && work != OperatorWork::by_element) return false;
    found |= is_meant;
  }
  return found;
}

}  // namespace rehearsal
