"""What is wrong in the papers, a sentence each: what verdicts rest on."""

from __future__ import annotations

__all__ = ["ERRATA"]

ERRATA = {
    "E-1": "DP-IGHT, Theorem 5.2: one of two gradients was forgotten, so the noise is that of twice the stated zCDP.",
    "E-2": (
        "DP-IGHT, Corollary 5.8 (logistic): the constant of its own remark is dropped; the noise costs 3 to 6 "
        "times the claimed epsilon."
    ),
    "E-3": (
        "DP-IGHT, Corollary 5.6 (linear): the squared loss has no Lipschitz constant, so no noise formula can be "
        "right without a clip."
    ),
    "E-4": (
        "A delta of .01 or .001 with thousands of rows allows publishing some of them in the clear; delta should "
        "be far below 1/n."
    ),
    "E-5": (
        "DPSL-KT, Theorem 4.3: the sparsest minimiser is not stable. Two neighbouring tables whose models have "
        "disjoint supports refute it."
    ),
    "E-6": "The same proof: 1/(2n) should be 1/n, which doubles the sensitivity even where the argument applies.",
    "E-7": "IGHT does not converge to the minimiser whose stability the proof claims.",
    "E-8": (
        "DPSL-KT, Corollary 4.7: a property of the private rows (mu) sets the noise; delta covers coins, not luck "
        "of the sample."
    ),
    "E-9": "DPSL-KT: the gradient bound gamma is assumed, not enforced, and its constant is not given.",
    "E-10": (
        "Knowledge transfer never beats noise added to the coefficients themselves; it pays only if a labelled "
        "public table is wanted."
    ),
    "E-11": "The classical Gaussian formula stops being valid at epsilon 6.8 to 8.4; it is used up to 10.",
    "E-12": (
        "Label-LDP-IHT: the noise protects the regression's own noise, not the range of the labels; epsilon 1 is "
        "really 62 or more."
    ),
    "E-13": (
        "Label-LDP-IHT: the printed update climbs, and its projection excludes the true coefficients of the experiment."
    ),
    "E-14": "LDP-IHT: the randomiser needs a public radius; without a clip there is none.",
    "E-15": (
        "Private Frank-Wolfe: constants of the noise; as printed it costs about twice the claimed epsilon for "
        "replace-one."
    ),
    "E-16": (
        "Gumbel noise instead of Laplace noise makes Frank-Wolfe's printed scale sound up to epsilon 4.5, at half "
        "the price."
    ),
    "E-17": (
        "DP-SRM: the lemma that prices it covers none of the budgets of the experiments; the noise it prescribes "
        "is more than needed."
    ),
    "E-18": "DP-SRM: the two clips are swapped in the experiments' formula.",
    "E-19": (
        "DP-SRM: stopping early does not cost the stated share of epsilon, and the 'test error' of the tables is a "
        "loss."
    ),
    "E-20": (
        "DP-LSSGD: the theorem covers no entry of its table, and the released code clips batch means instead of rows."
    ),
    "E-21": (
        "Laplacian smoothing after the noise changes nothing about privacy: it is an invertible map of what was "
        "released."
    ),
    "E-22": (
        "Output perturbation: Laplace noise on each coordinate for a sensitivity in l2 norm costs up to sqrt(d) "
        "times epsilon."
    ),
    "E-23": (
        "Gradient perturbation: the table prints 5 times less noise than the theorem; that noise costs 2.05, not .5."
    ),
    "E-24": (
        "The circuits' noise: Laplace noise on multiples of its scale reveals the exact average, and rejected "
        "Gaussians are shown."
    ),
    "E-25": "Two-stage was tuned outside the range in which objective perturbation is private.",
    "E-26": "DP-AGD: the released code adds the noise of its choice with the wrong sign, at 20 times the privacy cost.",
    "E-27": "Local objective perturbation: a missing '1 +' raises epsilon, and the reported loss has the wrong sign.",
    "E-28": "Hyper-parameters chosen by cross-validation on the private rows, unpaid.",
    "E-29": "Statements on accuracy that are wrong without harm to privacy.",
    "E-30": "Steps that nobody paid for: PCA, scaling by column maxima, constants read off the data.",
}
